#include "store/token_store.hpp"

#include <array>

namespace latchkey {
namespace {

constexpr std::array<std::string_view, 4> kRoles{"viewer", "service", "org-admin", "admin"};

}  // namespace

std::string_view to_string(Role role) { return kRoles.at(static_cast<std::size_t>(role)); }

std::optional<Role> parse_role(std::string_view text) {
  for (std::size_t i = 0; i < kRoles.size(); ++i)
    if (kRoles[i] == text) return static_cast<Role>(i);
  return std::nullopt;
}

}  // namespace latchkey
