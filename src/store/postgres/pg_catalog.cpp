#include "store/postgres/pg_catalog.hpp"

#include "base/hex.hpp"
#include "base/sha256.hpp"
#include "store/postgres/catalog_columns.hpp"
#include "store/postgres/run_layout.hpp"
#include "store/postgres/statements.hpp"

namespace latchkey::pg {
namespace {

// Identifies the query for these names within the batch.
std::string name_of(const std::vector<RecordName>& names) {
  Sha256 digest;
  for (const RecordName& name : names)
    digest.add_prefixed(to_string(name.kind)).add_prefixed(name.tenant).add_prefixed(name.name);
  return "records:" + to_hex(digest.finish());
}

}  // namespace

std::uint64_t PgCatalogRows::lock_version() {
  const auto latch = [] { return Statement{sql().find_catalog_latch, {}}; };
  // None: the migration inserts the row, and nothing deletes it.
  if (tables_.query_for_update("catalog latch", latch).empty())
    throw TablesError(Code::STORE_FORMAT, "latchkey.latches has no row `catalog`");
  const Rows& rows = tables_.query("catalog version", [] { return Statement{sql().catalog_version, {}}; });
  return static_cast<std::uint64_t>(rows.integer(0, 0));
}

CatalogRecords PgCatalogRows::find(const std::vector<RecordName>& names) {
  if (names.empty()) return {};
  const Rows& rows = tables_.query(name_of(names), [&] {
    Column kind{Type::text}, tenant{Type::text}, name{Type::text};
    for (const RecordName& one : names) {
      kind.add(to_string(one.kind));
      tenant.add(one.tenant);
      name.add(one.name);
    }
    return Statement{sql().find_records, Params().add(kind).add(tenant).add(name)};
  });
  CatalogRecords found;
  for (int row = 0; row < rows.size(); ++row) {
    CatalogRecord record = read_record(rows, row);
    found.emplace(record.id, std::move(record));
  }
  return found;
}

void PgCatalogRows::write(const std::vector<CatalogRecord>& records) { tables_.write(put_records(records)); }

void PgCatalogRows::add(const std::vector<AuditEntry>& entries) { tables_.write(insert_audit(entries)); }

bool PgCatalogRows::purge_audit(Instant before, std::uint32_t limit) {
  const Rows& rows = tables_.query("old audit", [&] {
    return Statement{sql().find_old_audit, Params().add(to_ms(before)).add(std::int64_t{limit})};
  });
  if (rows.empty()) return false;
  Column numbers{Type::int8};
  for (int row = 0; row < rows.size(); ++row) numbers.add(rows.integer(row, 0));
  tables_.write({sql().erase_audit, Params().add(numbers)});
  return rows.size() == static_cast<int>(limit);
}

}  // namespace latchkey::pg
