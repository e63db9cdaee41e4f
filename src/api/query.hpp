// Query parameters: like a body's members, each must be known and may be given once. INVALID_ARGUMENT otherwise.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace latchkey::api {

class Query {
 public:
  static Result<Query> parse(std::string_view text, std::span<const std::string_view> known);

  // Empty when it is not there.
  std::string_view find(std::string_view name) const;
  // `otherwise` when it is not there; INVALID_ARGUMENT unless it is a whole number from `least` to `most`.
  Result<std::uint32_t> find_number(std::string_view name, std::uint32_t otherwise, std::uint32_t least,
                                    std::uint32_t most) const;

 private:
  std::vector<std::pair<std::string, std::string>> parameters_;
};

}  // namespace latchkey::api
