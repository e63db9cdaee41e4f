#include "store/dead_letters.hpp"

#include <array>

namespace latchkey {
namespace {

constexpr std::array<std::string_view, 3> kSteps{"retried", "completed", "failed"};

}  // namespace

std::string_view to_string(StepKind kind) { return kSteps.at(static_cast<std::size_t>(kind)); }

MemberPosition position_of(const DeadLetterMember& member) { return {uuid_counter(member.run), member.generation}; }

}  // namespace latchkey
