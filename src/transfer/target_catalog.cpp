// The catalog and the audit log of the copy: how they are written and read back.
#include <algorithm>

#include "store/catalog_change.hpp"
#include "store/postgres/catalog_columns.hpp"
#include "store/postgres/statements.hpp"
#include "transfer/target.hpp"

namespace latchkey::transfer {

using pg::Params;
using pg::Rows;

namespace {

constexpr std::size_t kCatalogRowsMost = 1'000;
constexpr std::size_t kCatalogBytesMost = 8 * 1024 * 1024;
constexpr std::uint32_t kAuditPage = 250;

}  // namespace

void Writer::add_record(const CatalogRecord& record) {
  catalog_bytes_ += record.body.size();
  records_.push_back(record);
  if (records_.size() >= kCatalogRowsMost || catalog_bytes_ >= kCatalogBytesMost) write_records();
}

void Writer::write_records() {
  if (!records_.empty()) target_.run(pg::put_records(records_));
  records_.clear();
  catalog_bytes_ = 0;
}

void Writer::add_audit(const AuditEntry& entry) {
  write_records();
  catalog_bytes_ += entry.before.size() + entry.after.size();
  audit_.push_back(entry);
  if (audit_.size() >= kCatalogRowsMost || catalog_bytes_ >= kCatalogBytesMost) write_audit();
}

void Writer::write_audit() {
  if (!audit_.empty()) target_.run(pg::insert_audit(audit_));
  audit_.clear();
  catalog_bytes_ = 0;
}

void Target::read_catalog(StoreVisitor& into) {
  const Rows rows =
      run({pg::sql().list_records, Params().add(std::int64_t{0}).add(true).add(true).add(pg::Column(pg::Type::text))});
  std::vector<CatalogRecord> records;
  for (int row = 0; row < rows.size(); ++row) records.push_back(pg::read_record(rows, row));
  std::ranges::sort(records, {}, &CatalogRecord::id);  // not by a database's collation
  for (const CatalogRecord& record : records) into.add_record(record);
}

void Target::read_audit(StoreVisitor& into) {
  static const std::string kSql = "SELECT " + pg::sql().audit_columns +
                                  " FROM latchkey.audit a WHERE (a.at, a.number) < ($1, $2) ORDER BY a.at DESC, "
                                  "a.number DESC LIMIT $3";
  AuditPosition from = *read_audit_cursor("");
  while (true) {
    const Rows rows = run(
        {kSql, Params().add(from.at_ms).add(static_cast<std::int64_t>(from.counter)).add(std::int64_t{kAuditPage})});
    for (int row = 0; row < rows.size(); ++row) {
      const AuditEntry entry = pg::read_audit_entry(rows, row);
      into.add_audit(entry);
      from = audit_position(entry);
    }
    if (rows.size() < static_cast<int>(kAuditPage)) return;
  }
}

}  // namespace latchkey::transfer
