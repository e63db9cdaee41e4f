// The rules of a catalog change, shared by all back ends: limits, versions, conflicts and audit entries. A back end
// implements CatalogRows over its tables and calls apply_change() inside a transaction.
#pragma once

#include <map>

#include "model/decide.hpp"
#include "store/catalog.hpp"

namespace latchkey {

// Records by their names, deleted ones included.
using CatalogRecords = std::map<RecordName, CatalogRecord>;

struct AcceptedChange {
  RecordsWritten reply;
  std::vector<CatalogRecord> records;  // to write; none: nothing changes
  std::vector<AuditEntry> audit;       // without ids
};
using ChangeDecision = std::variant<AcceptedChange, VersionConflict>;

// Pure. `current` has the records that the change names, and `catalog_version` is the version before it.
ChangeDecision decide_change(const CatalogChange& change, const CatalogRecords& current, std::uint64_t catalog_version,
                             Instant now);

// The rows of one transaction, which reads them again before it writes.
class CatalogRows {
 public:
  virtual ~CatalogRows() = default;
  // From here to the end of the transaction no other transaction changes the catalog.
  virtual std::uint64_t lock_version() = 0;
  virtual CatalogRecords find(const std::vector<RecordName>& names) = 0;
  virtual void write(const std::vector<CatalogRecord>& records) = 0;
  virtual void add(const std::vector<AuditEntry>& entries) = 0;
  virtual Uuid next_id(Instant now) = 0;
};

ChangeReply apply_change(CatalogRows& rows, const CatalogChange& change, Instant now);
void apply_audit(CatalogRows& rows, std::vector<AuditEntry> entries, Instant now);

// INVALID_ARGUMENT or BODY_TOO_LARGE: what cannot be stored.
std::optional<Error> find_fault(const CatalogChange& change);
std::optional<Error> find_fault(const std::vector<AuditEntry>& entries);

bool is_listed(const CatalogRecord& record, const RecordQuery& query);
bool is_listed(const AuditEntry& entry, const AuditQuery& query);

// The place of an entry among all others, by time and then by the counter in its id.
struct AuditPosition {
  std::int64_t at_ms = 0;
  std::uint64_t counter = 0;
  auto operator<=>(const AuditPosition&) const = default;
};
AuditPosition audit_position(const AuditEntry& entry);
// An empty cursor begins before the newest entry. None: the cursor is not from this store.
std::optional<AuditPosition> read_audit_cursor(std::string_view cursor);
std::string write_audit_cursor(const AuditPosition& position);

// Purging deletes the entries from before this time.
Instant oldest_audit(const Retention& retention, Instant now);

// Collects one page from entries that come newest first.
class AuditPager {
 public:
  explicit AuditPager(const AuditQuery& query) : query_(query) {}
  // False when the page is full; the entry is then on the next page.
  bool add(AuditEntry entry);
  AuditPage finish() { return std::move(page_); }

 private:
  const AuditQuery& query_;
  AuditPage page_;
  std::size_t bytes_ = 0;
};

}  // namespace latchkey
