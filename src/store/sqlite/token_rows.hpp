// Reads and writes tokens as rows of lk_tokens.
#pragma once

#include "store/sqlite/database.hpp"
#include "store/token_store.hpp"

namespace latchkey {

void write_token(Database& database, const TokenRecord& token);
// For the columns of lk_tokens.
TokenRecord read_token(const Statement& row);

}  // namespace latchkey
