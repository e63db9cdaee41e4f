// How dead letters and tokens lie in their tables.
#pragma once

#include "pg/codec.hpp"
#include "store/records.hpp"
#include "store/tables.hpp"

namespace latchkey::pg {

// Of letter_columns (columns.sql).
DeadLetter read_letter(const Rows& rows, int row);
Statement insert_letter(const DeadLetter& letter);
Statement update_letter(const DeadLetter& letter);

// Of member_columns.
DeadLetterMember read_member(const Rows& rows, int row);
Statement put_member(const DeadLetterMember& member, const Uuid& letter, std::string_view tenant);

Statement insert_token(const TokenRecord& token);
TokenRecord read_token(const Rows& rows, int row);

}  // namespace latchkey::pg
