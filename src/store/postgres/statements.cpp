#include "store/postgres/statements.hpp"

#include "store/postgres/batch.sql.hpp"
#include "store/postgres/catalog.sql.hpp"
#include "store/postgres/columns.sql.hpp"
#include "store/postgres/dead_letters.sql.hpp"
#include "store/postgres/duplicates.sql.hpp"
#include "store/postgres/load.sql.hpp"
#include "store/postgres/presence.sql.hpp"
#include "store/postgres/purge.sql.hpp"
#include "store/postgres/reads.sql.hpp"
#include "store/postgres/server.sql.hpp"
#include "store/postgres/writes.sql.hpp"

namespace latchkey::pg {

const NamedSql& named_sql() {
  static const NamedSql all({files::batch, files::catalog, files::columns, files::duplicates, files::dead_letters,
                             files::load, files::presence, files::purge, files::reads, files::server, files::writes});
  return all;
}

const Statements& sql() {
  static const Statements all;
  return all;
}

}  // namespace latchkey::pg
