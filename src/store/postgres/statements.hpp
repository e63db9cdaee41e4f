// The SQL of this folder's .sql files: sql().xyz is the statement named xyz there. An unknown name does not compile.
// The texts live as long as the process and may be read from any thread. They never change, because prepared
// statements are identified by their text.
//
// Statements that depend on the request are built elsewhere: pages of runs (pg_list.cpp), jobs that are due
// (pg_load.cpp), writes of many rows (Bulk), session settings (pg/session_settings.cpp).
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
