// The text of a token: lk_<16 characters: its id>_<40 characters: its secret><6 characters: a checksum>.
// The checksum tells a mistyped token from a wrong one without a lookup in the table, and lets scanners find leaks. Pure.
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

// 200 random bits of secret: `random` must be fit for that (SystemRandom).
TokenText make_token(Random& random);

struct TokenParts {
  std::string_view id;
  Digest secret_hash{};
};
// None unless it has the form above and its checksum is right.
std::optional<TokenParts> parse_token(std::string_view text);

}  // namespace latchkey::api
