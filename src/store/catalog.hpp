// Catalog: the records that say what Latchkey should do (functions, schedules, pauses, alert rules), and the audit log
// of every change to them. Records change rarely and are read often: a server holds copies of them in memory.
//
// Every back end guarantees:
// - A change of several records is one transaction. Either all of its writes are applied, with their audit entries, or
//   none is.
// - A record's version begins at 1 and rises by one with each change, also across a delete. It is never used twice.
// - The catalog's version rises by one with each committed change. All changes up to a version that was read are
// visible.
// - A write that would change nothing is accepted and changes nothing. A write that is sent again because its reply was
//   lost is therefore accepted, too, unless another caller has changed the record since.
// - The store's clock gives the time of changes and audit entries.
// It does not: check that a body is JSON, apply a default, or remove a deleted record's version.
//
// Failure: INVALID_ARGUMENT and BODY_TOO_LARGE for a write over the limits; other errors as for any write of the store.
// Reads and write_records() block their caller for one short transaction. Any thread may call.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/error.hpp"
#include "base/time.hpp"
#include "base/uuid.hpp"
#include "store/done.hpp"

namespace latchkey {

inline constexpr std::size_t kChangeWritesMax = 10'000;
inline constexpr std::size_t kChangeBytesMax = 32 * 1024 * 1024;  // of all bodies of one change
// Audit entries younger than this are never deleted, whatever the retention is. PostgreSQL enforces it by a policy.
inline constexpr Duration kAuditRetentionMin = std::chrono::hours{24 * 30};

// Stored as text; new kinds are added at the end.
enum class RecordKind : std::uint8_t {
  function,
  function_pause,
  tenant_override,
  schedule,
  schedule_pause,
  alert_rules,
  cache_settings,
  config_hash
};
std::string_view to_string(RecordKind kind);
std::optional<RecordKind> parse_record_kind(std::string_view text);

enum class RecordSource : std::uint8_t { config, api };
std::string_view to_string(RecordSource source);
std::optional<RecordSource> parse_record_source(std::string_view text);

struct RecordName {
  RecordKind kind = RecordKind::function;
  std::string tenant;  // empty: shared by all tenants
  std::string name;
  auto operator<=>(const RecordName&) const = default;
};

struct CatalogRecord {
  RecordName id;
  std::uint64_t version = 1;
  std::uint64_t change = 0;  // the catalog's version of the record's latest change
  RecordSource source = RecordSource::api;
  std::string body;         // JSON; empty once deleted
  bool is_retired = false;  // takes no new work, but work that exists still needs it
  bool is_deleted = false;  // only its version is left
  Instant updated_at;
  std::string updated_by;
  bool operator==(const CatalogRecord&) const = default;
};

struct PutRecord {
  RecordSource source = RecordSource::api;
  std::string body;
  bool is_retired = false;
};
struct DeleteRecord {};
struct RecordWrite {
  RecordName id;
  std::variant<PutRecord, DeleteRecord> write;
  // The version that the record must have (`If-Match`). 0: the record must not exist. None: any.
  std::optional<std::uint64_t> expected;
  std::string action;  // for the audit log, such as `function.put`. Empty: no entry, for writes of servers themselves
};
// Each record at most once.
struct CatalogChange {
  std::vector<RecordWrite> writes;
  std::string actor;
};

struct RecordsWritten {
  std::uint64_t catalog_version = 0;
  std::vector<std::uint64_t> versions;  // of the records, in the order of the writes. 0: a delete of no record
};
// The first record whose version is not the expected one. Nothing was changed.
struct VersionConflict {
  RecordName id;
  std::uint64_t version = 0;  // 0: no such record
};
using ChangeReply = std::variant<RecordsWritten, VersionConflict>;

struct RecordQuery {
  std::vector<RecordKind> kinds;    // empty: all
  std::uint64_t changed_after = 0;  // only records that changed after this version of the catalog
  bool with_deleted = false;
};

// A change by a person, a token or a server's config. Empty texts: not known, or not applicable.
struct AuditEntry {
  Uuid id;     // the store gives it
  Instant at;  // by the store's clock
  std::string actor;
  std::string action;        // such as `token.revoke`
  std::string subject_kind;  // such as `token`
  std::string subject;
  std::string tenant;
  std::string before, after;  // JSON
  bool operator==(const AuditEntry&) const = default;
};
// Empty texts and absent values match every entry.
struct AuditQuery {
  std::optional<std::string> tenant;
  std::optional<Instant> since;
  std::string actor;
  std::string subject_kind;
  std::string subject;
  std::string cursor;
  std::uint32_t limit = 50;
  std::size_t bytes_max = 8 * 1024 * 1024;  // of `before` and `after`; a page has at least one entry
};
struct AuditPage {
  std::vector<AuditEntry> entries;  // newest first
  std::string next;                 // empty on the last page
};

class Catalog {
 public:
  virtual ~Catalog() = default;

  virtual Result<ChangeReply> write_records(const CatalogChange& change) = 0;
  // Ordered by RecordName. STORE_FORMAT for a record of a kind that only a newer version of Latchkey knows; a query
  // that names kinds does not meet it.
  virtual Result<std::vector<CatalogRecord>> list_records(const RecordQuery& query) = 0;
  // None for a deleted record.
  virtual Result<std::optional<CatalogRecord>> find_record(const RecordName& id) = 0;
  // 0 before the first change. Cheap: servers poll it. After a failover it may be lower than before (data_epoch()).
  virtual Result<std::uint64_t> catalog_version() = 0;

  // Entries about other parts of the store. The store sets their ids and times. Never blocks; the entries are one
  // transaction.
  virtual void add_audit(std::vector<AuditEntry> entries, Done<std::monostate> done) = 0;
  virtual Result<AuditPage> list_audit(const AuditQuery& query) = 0;
};

}  // namespace latchkey
