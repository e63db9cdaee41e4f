// Converts dead letters, their members and tokens from and to table rows.
#pragma once

#include "pg/codec.hpp"
#include "store/dead_letters.hpp"
#include "store/tables.hpp"

namespace latchkey::pg {

// Reads dead_letter_columns (columns.sql).
DeadLetter read_dead_letter(const Rows& rows, int row);
Statement insert_dead_letter(const DeadLetter& dead_letter);
Statement update_dead_letter(const DeadLetter& dead_letter);

// Reads member_columns.
DeadLetterMember read_member(const Rows& rows, int row);
Statement put_member(const DeadLetterMember& member, const Uuid& dead_letter, std::string_view tenant);

Statement insert_token(const TokenRecord& token);
TokenRecord read_token(const Rows& rows, int row);

}  // namespace latchkey::pg
