#include "http/target.hpp"

#include "http/chars.hpp"
#include "http/scan.hpp"

namespace latchkey::http {
namespace {

constexpr CharSet kUnreserved = alphanumeric_and("-._~");

// `space` is the character that encodes a space. A caller without one passes a space.
Result<std::string> decode(std::string_view text, char space) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    char c = text.front() == space ? ' ' : text.front();
    std::size_t used = 1;
    if (c == '%') {
      const int high = text.size() < 3 ? -1 : hex_value(text[1]);
      const int low = text.size() < 3 ? -1 : hex_value(text[2]);
      if (high < 0 || low < 0) return fail(Code::INVALID_ARGUMENT, "a percent sign is not followed by two digits");
      c = static_cast<char>(high * 16 + low);
      used = 3;
    }
    if (is_control(c)) return fail(Code::INVALID_ARGUMENT, "the address contains a control character");
    out.push_back(c);
    text.remove_prefix(used);
  }
  return out;
}

}  // namespace

Target split_target(std::string_view target) {
  const std::size_t mark = target.find('?');
  if (mark == std::string_view::npos) return {target, {}};
  return {target.substr(0, mark), target.substr(mark + 1)};
}

Result<std::string> decode_percent(std::string_view text) { return decode(text, ' '); }
Result<std::string> decode_query(std::string_view text) { return decode(text, '+'); }

std::string encode_percent(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (is_in(kUnreserved, c)) {
      out.push_back(c);
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out.push_back('%');
    out.push_back(kDigits[byte >> 4]);
    out.push_back(kDigits[byte & 15]);
  }
  return out;
}

Result<std::optional<std::string>> find_parameter(std::string_view query, std::string_view name) {
  while (!query.empty()) {
    const std::size_t ampersand = query.find('&');
    const std::string_view pair = query.substr(0, ampersand);
    const std::size_t equals = pair.find('=');
    Result<std::string> found = decode_query(pair.substr(0, equals));
    if (!found) return std::unexpected(found.error());
    if (*found == name) {
      if (equals == std::string_view::npos) return std::string{};
      Result<std::string> value = decode_query(pair.substr(equals + 1));
      if (!value) return std::unexpected(value.error());
      return std::move(*value);
    }
    query = ampersand == std::string_view::npos ? std::string_view{} : query.substr(ampersand + 1);
  }
  return std::nullopt;
}

std::optional<std::string_view> take_segment(std::string_view& path) {
  if (!path.starts_with('/')) return std::nullopt;
  path.remove_prefix(1);
  const std::size_t slash = path.find('/');
  const std::string_view segment = path.substr(0, slash);
  path = slash == std::string_view::npos ? std::string_view{} : path.substr(slash);
  return segment;
}

}  // namespace latchkey::http
