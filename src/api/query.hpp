// Query parameters. Like a body's members, each must be known and may occur once; otherwise INVALID_ARGUMENT.
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

  // Empty when the parameter is absent.
  std::string_view find(std::string_view name) const;
  // `otherwise` when the parameter is absent; INVALID_ARGUMENT unless it is a whole number from `least` to `most`.
  Result<std::uint32_t> find_number(std::string_view name, std::uint32_t otherwise, std::uint32_t least,
                                    std::uint32_t most) const;

 private:
  std::vector<std::pair<std::string, std::string>> parameters_;
};

}  // namespace latchkey::api
