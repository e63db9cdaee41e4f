#include "store/records.hpp"

#include <array>

namespace latchkey {
namespace {

constexpr std::array<std::string_view, 3> kSteps{"retried", "completed", "failed"};
constexpr std::array<std::string_view, 4> kRoles{"viewer", "service", "org-admin", "admin"};

}  // namespace

std::string_view to_string(StepKind kind) { return kSteps.at(static_cast<std::size_t>(kind)); }
std::string_view to_string(Role role) { return kRoles.at(static_cast<std::size_t>(role)); }

std::optional<Role> parse_role(std::string_view text) {
  for (std::size_t i = 0; i < kRoles.size(); ++i)
    if (kRoles[i] == text) return static_cast<Role>(i);
  return std::nullopt;
}

MemberPlace place_of(const DeadLetterMember& member) { return {uuid_counter(member.run), member.generation}; }

}  // namespace latchkey
