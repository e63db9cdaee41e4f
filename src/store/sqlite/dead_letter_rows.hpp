// How dead letters lie in their tables.
#pragma once

#include "store/dead_letters.hpp"
#include "store/sqlite/database.hpp"

namespace latchkey {

void bind_dead_letter(Statement& put, const DeadLetter& dead_letter);
// The columns of lk_dead_letters.
DeadLetter read_dead_letter(const Statement& row);
void bind_member(Statement& add, const DeadLetterMember& member, const Uuid& dead_letter);
// The columns of list_members.
DeadLetterMember read_member(const Statement& row);
// Those behind `after`, in the order of their place; without their steps.
std::vector<DeadLetterMember> read_members(Database& database, Uuid dead_letter, MemberPosition after, std::uint32_t limit);
MemberStep read_step(const Statement& row);

}  // namespace latchkey
