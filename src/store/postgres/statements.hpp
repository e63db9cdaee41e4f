// The SQL of this folder's .sql files: sql().xyz is what is named xyz there, put together once. A name that is in none
// of them does not compile. The texts live for ever, may be read from any thread, and are the same each time: prepared
// statements are named by them.
//
// What is put together from what is asked for is not here: pages of runs (pg_list.cpp), jobs that are due
// (pg_load.cpp), writes of many rows (Bulk), settings (transaction_settings.cpp).
#pragma once

#include <string>

#include "store/named_sql.hpp"

namespace latchkey::pg {

const NamedSql& named_sql();

struct Statements {
#define STATEMENT(name) const std::string& name = named_sql().find(#name);
#include "store/postgres/statements.def"
#undef STATEMENT
};

const Statements& sql();

}  // namespace latchkey::pg
