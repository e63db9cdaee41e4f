// Reads and writes dead letters, their members and steps as rows.
#pragma once

#include "store/dead_letters.hpp"
#include "store/sqlite/database.hpp"

namespace latchkey {

void bind_dead_letter(Statement& put, const DeadLetter& dead_letter);
// For the columns of lk_dead_letters.
DeadLetter read_dead_letter(const Statement& row);
void bind_member(Statement& add, const DeadLetterMember& member, const Uuid& dead_letter);
// For the columns of list_members.
DeadLetterMember read_member(const Statement& row);
// The members after `after`, ordered by position, without their steps.
std::vector<DeadLetterMember> read_members(Database& database, Uuid dead_letter, MemberPosition after,
                                           std::uint32_t limit);
MemberStep read_step(const Statement& row);

}  // namespace latchkey
