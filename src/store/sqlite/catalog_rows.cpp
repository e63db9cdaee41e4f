#include "store/sqlite/catalog_rows.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "store/sqlite/sqlite_reader.hpp"

namespace latchkey {
namespace {

CatalogRecord read_record(const Statement& row) {
  const auto kind = parse_record_kind(row.bytes(0));
  const auto source = parse_record_source(row.bytes(5));
  if (!kind || !source)
    throw TablesError(Code::STORE_FORMAT, "the catalog has a record that a newer version of Latchkey wrote");
  return {.id = {*kind, std::string(row.bytes(1)), std::string(row.bytes(2))},
          .version = static_cast<std::uint64_t>(row.integer(3)),
          .change = static_cast<std::uint64_t>(row.integer(4)),
          .source = *source,
          .body = std::string(row.bytes(10)),
          .is_retired = row.integer(6) != 0,
          .is_deleted = row.integer(7) != 0,
          .updated_at = from_ms(row.integer(8)),
          .updated_by = std::string(row.bytes(9))};
}

AuditEntry read_audit_entry(const Statement& row) {
  return {.id = read_uuid(row.bytes(0)),
          .at = from_ms(row.integer(1)),
          .actor = std::string(row.bytes(2)),
          .action = std::string(row.bytes(3)),
          .subject_kind = std::string(row.bytes(4)),
          .subject = std::string(row.bytes(5)),
          .tenant = std::string(row.bytes(6)),
          .before = std::string(row.bytes(7)),
          .after = std::string(row.bytes(8))};
}

std::optional<CatalogRecord> find_one(Database& database, const RecordName& id) {
  Statement query = database.prepare(find_sql("find_record"));
  query.bind_text(1, to_string(id.kind)).bind_text(2, id.tenant).bind_text(3, id.name);
  if (!query.step()) return std::nullopt;
  return read_record(query);
}

}  // namespace

std::uint64_t read_catalog_version(Database& database) {
  Statement query = database.prepare(find_sql("read_catalog_version"));
  LK_ASSERT(query.step());
  return static_cast<std::uint64_t>(query.integer(0));
}

CatalogRecords SqliteCatalogRows::find(const std::vector<RecordName>& names) {
  CatalogRecords found;
  for (const RecordName& name : names)
    if (auto record = find_one(tables_.database(), name)) found.emplace(name, *std::move(record));
  return found;
}

void SqliteCatalogRows::write(const std::vector<CatalogRecord>& records) {
  tables_.change([&](Database& database) {
    Statement put = database.prepare(find_sql("put_record"));
    for (const CatalogRecord& record : records)
      put.bind_text(1, to_string(record.id.kind))
          .bind_text(2, record.id.tenant)
          .bind_text(3, record.id.name)
          .bind(4, static_cast<std::int64_t>(record.version))
          .bind(5, static_cast<std::int64_t>(record.change))
          .bind_text(6, to_string(record.source))
          .bind(7, record.is_retired ? 1 : 0)
          .bind(8, record.is_deleted ? 1 : 0)
          .bind(9, to_ms(record.updated_at))
          .bind_text(10, record.updated_by)
          .bind_text(11, record.body)
          .run();
    tables_.set_catalog_version(records.back().change);
  });
}

void SqliteCatalogRows::add(const std::vector<AuditEntry>& entries) {
  tables_.change([&](Database& database) {
    Statement put = database.prepare(find_sql("add_audit"));
    for (const AuditEntry& entry : entries)
      put.bind(1, seq_of(entry.id))
          .bind_blob(2, std::span<const unsigned char>(entry.id.bytes))
          .bind(3, to_ms(entry.at))
          .bind_text(4, entry.actor)
          .bind_text(5, entry.action)
          .bind_text(6, entry.subject_kind)
          .bind_text(7, entry.subject)
          .bind_text(8, entry.tenant)
          .bind_text(9, entry.before)
          .bind_text(10, entry.after)
          .run();
  });
}

bool SqliteCatalogRows::purge_audit(Instant before, std::uint32_t limit) {
  std::vector<std::int64_t> numbers;
  Statement old = tables_.database().prepare(find_sql("find_old_audit"));
  old.bind(1, to_ms(before)).bind(2, std::int64_t{limit});
  while (old.step()) numbers.push_back(old.integer(0));
  if (numbers.empty()) return false;
  tables_.change([&](Database& database) {
    Statement erase = database.prepare(find_sql("erase_audit"));
    for (const std::int64_t number : numbers) erase.bind(1, number).run();
  });
  return numbers.size() == limit;
}

std::vector<CatalogRecord> SqliteReader::list_records(const RecordQuery& query) {
  const std::lock_guard lock(mutex_);
  Statement rows = database_.prepare(find_sql("list_records"));
  std::vector<CatalogRecord> found;
  const auto read_all = [&] {
    while (rows.step()) found.push_back(read_record(rows));
  };
  rows.bind(1, static_cast<std::int64_t>(query.changed_after)).bind(2, query.with_deleted ? 1 : 0);
  if (query.kinds.empty()) read_all();
  for (const RecordKind kind : query.kinds) {
    rows.bind_text(3, to_string(kind));
    read_all();
  }
  std::ranges::sort(found, {}, &CatalogRecord::id);
  return found;
}

std::optional<CatalogRecord> SqliteReader::find_record(const RecordName& id) {
  const std::lock_guard lock(mutex_);
  auto record = find_one(database_, id);
  if (record && record->is_deleted) record.reset();
  return record;
}

AuditPage SqliteReader::list_audit(const AuditQuery& query, const AuditPosition& from) {
  const std::lock_guard lock(mutex_);
  Statement rows = database_.prepare(find_sql("list_audit"));
  rows.bind(1, from.at_ms)
      .bind(2, static_cast<std::int64_t>(from.counter))
      .bind(3, query.since ? to_ms(*query.since) : 0)
      .bind_text(5, query.actor)
      .bind_text(6, query.subject_kind)
      .bind_text(7, query.subject);
  if (query.tenant) rows.bind_text(4, *query.tenant);
  AuditPager pager(query);
  while (rows.step() && pager.add(read_audit_entry(rows))) continue;
  return pager.finish();
}

}  // namespace latchkey
