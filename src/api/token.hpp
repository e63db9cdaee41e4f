// The text of a token: lk_<16 characters: its id>_<40 characters: its secret><6 characters: a checksum>.
// With the checksum a mistyped token is found without the table, and scanners can find leaked tokens. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/random.hpp"
#include "base/sha256.hpp"

namespace latchkey::api {

struct TokenText {
  std::string whole;
  std::string id;
  Digest secret_hash{};
};

// The secret has 200 random bits, so `random` must be suitable for secrets (SystemRandom).
TokenText make_token(Random& random);

struct TokenParts {
  std::string_view id;
  Digest secret_hash{};
};
// None unless the text has the form above and a correct checksum.
std::optional<TokenParts> parse_token(std::string_view text);

}  // namespace latchkey::api
