#include "api/token.hpp"

namespace latchkey::api {
namespace {

constexpr std::string_view kDigits = "0123456789abcdefghjkmnpqrstvwxyz";  // Crockford's base 32
constexpr std::string_view kPrefix = "lk_";
constexpr std::size_t kIdSize = 16, kSecretSizeMin = 32, kSecretSize = 40, kSecretSizeMax = 128, kChecksumSize = 6;

void append_random(std::string& out, std::size_t size, Random& random) {
  for (std::size_t i = 0; i < size; ++i) out.push_back(kDigits[random.next() & 31]);
}

std::string checksum_of(std::string_view text) {
  const Digest digest = sha256(text);
  std::string out;
  for (std::size_t i = 0; i < kChecksumSize; ++i) out.push_back(kDigits[digest[i] & 31]);
  return out;
}

}  // namespace

TokenText make_token(Random& random) {
  TokenText token;
  append_random(token.id, kIdSize, random);
  std::string secret;
  append_random(secret, kSecretSize, random);
  token.secret_hash = sha256(secret);
  token.whole = std::string(kPrefix) + token.id + "_" + secret;
  token.whole += checksum_of(token.whole);
  return token;
}

std::optional<TokenParts> parse_token(std::string_view text) {
  const std::size_t before = kPrefix.size() + kIdSize + 1;
  if (text.size() < before + kSecretSizeMin + kChecksumSize || text.size() > before + kSecretSizeMax) return {};
  if (!text.starts_with(kPrefix) || text[before - 1] != '_') return {};
  const std::string_view body = text.substr(0, text.size() - kChecksumSize);
  if (checksum_of(body) != text.substr(body.size())) return {};
  return TokenParts{text.substr(kPrefix.size(), kIdSize), sha256(body.substr(before))};
}

}  // namespace latchkey::api
