#include "store/postgres/catalog_columns.hpp"

#include "store/postgres/run_layout.hpp"
#include "store/postgres/statements.hpp"
#include "store/tables.hpp"

namespace latchkey::pg {
namespace {

std::string_view encode(bool flag) { return flag ? std::string_view("\1", 1) : std::string_view("\0", 1); }

}  // namespace

CatalogRecord read_record(const Rows& rows, int row) {
  const auto kind = parse_record_kind(rows.bytes(row, 0));
  const auto source = parse_record_source(rows.bytes(row, 5));
  if (!kind || !source)
    throw TablesError(Code::STORE_FORMAT, "the catalog has a record that a newer version of Latchkey wrote");
  return {.id = {*kind, std::string(rows.bytes(row, 1)), std::string(rows.bytes(row, 2))},
          .version = static_cast<std::uint64_t>(rows.integer(row, 3)),
          .change = static_cast<std::uint64_t>(rows.integer(row, 4)),
          .source = *source,
          .body = std::string(rows.bytes(row, 10)),
          .is_retired = rows.boolean(row, 6),
          .is_deleted = rows.boolean(row, 7),
          .updated_at = from_ms(rows.integer(row, 8)),
          .updated_by = std::string(rows.bytes(row, 9))};
}

Statement put_records(const std::vector<CatalogRecord>& records) {
  Column kind{Type::text}, tenant{Type::text}, name{Type::text}, version{Type::int8}, change{Type::int8},
      source{Type::text}, body{Type::text}, is_retired{Type::boolean}, is_deleted{Type::boolean},
      updated_at{Type::int8}, updated_by{Type::text};
  for (const CatalogRecord& record : records) {
    kind.add(to_string(record.id.kind));
    tenant.add(record.id.tenant);
    name.add(record.id.name);
    version.add(static_cast<std::int64_t>(record.version));
    change.add(static_cast<std::int64_t>(record.change));
    source.add(to_string(record.source));
    body.add(record.body);
    is_retired.add(encode(record.is_retired));
    is_deleted.add(encode(record.is_deleted));
    updated_at.add(to_ms(record.updated_at));
    updated_by.add(record.updated_by);
  }
  Statement put = Bulk{
      {{"kind", &kind},
       {"tenant", &tenant},
       {"name", &name},
       {"version", &version},
       {"change", &change},
       {"source", &source},
       {"body", &body},
       {"is_retired", &is_retired},
       {"is_deleted", &is_deleted},
       {"updated_at", &updated_at},
       {"updated_by",
        &updated_by}}}.insert_into("latchkey.catalog");
  put.sql += " " + sql().on_record_conflict;
  return put;
}

AuditEntry read_audit_entry(const Rows& rows, int row) {
  return {.id = rows.uuid(row, 0),
          .at = from_ms(rows.integer(row, 1)),
          .actor = std::string(rows.bytes(row, 2)),
          .action = std::string(rows.bytes(row, 3)),
          .subject_kind = std::string(rows.bytes(row, 4)),
          .subject = std::string(rows.bytes(row, 5)),
          .tenant = std::string(rows.bytes(row, 6)),
          .before = std::string(rows.bytes(row, 7)),
          .after = std::string(rows.bytes(row, 8))};
}

Statement insert_audit(const std::vector<AuditEntry>& entries) {
  Column number{Type::int8}, id{Type::uuid}, at{Type::int8}, actor{Type::text}, action{Type::text},
      subject_kind{Type::text}, subject{Type::text}, tenant{Type::text}, before{Type::text}, after{Type::text};
  for (const AuditEntry& entry : entries) {
    number.add(seq_in(entry.id));
    id.add(entry.id);
    at.add(to_ms(entry.at));
    actor.add(entry.actor);
    action.add(entry.action);
    subject_kind.add(entry.subject_kind);
    subject.add(entry.subject);
    tenant.add(entry.tenant);
    before.add(entry.before);
    after.add(entry.after);
  }
  return Bulk{{{"number", &number},
               {"id", &id},
               {"at", &at},
               {"actor", &actor},
               {"action", &action},
               {"subject_kind", &subject_kind},
               {"subject", &subject},
               {"tenant", &tenant},
               {"before", &before},
               {"after", &after}}}
      .insert_into("latchkey.audit");
}

Params audit_params(const AuditQuery& query, std::int64_t at_ms, std::uint64_t counter) {
  return Params()
      .add(at_ms)
      .add(static_cast<std::int64_t>(counter))
      .add(query.since ? to_ms(*query.since) : 0)
      .add_or_null(query.tenant)
      .add(std::string_view(query.actor))
      .add(std::string_view(query.subject_kind))
      .add(std::string_view(query.subject))
      .add(query.limit + std::int64_t{1})
      .add(static_cast<std::int64_t>(query.bytes_max));
}

}  // namespace latchkey::pg
