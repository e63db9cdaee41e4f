// Sink: takes all that a store holds, piece by piece, in one order: runs from the newest, waits by their ends, dead
// letters from the newest with their members by place, tokens by id, records of the catalog by name (deleted ones
// included), audit entries from the newest.
#pragma once

#include "store/dead_letters.hpp"
#include "store/store.hpp"
#include "store/token_store.hpp"

namespace latchkey::transfer {

struct MovedRun {
  Run run;
  bool has_key = false;  // it is its key's latest
  std::optional<Duplicates> duplicates;
};

struct Wait {
  std::int64_t predecessor = 0;  // the counters in their ids
  std::int64_t dependent = 0;
  RunId run;  // the dependent
};

class Sink {
 public:
  virtual ~Sink() = default;
  virtual void add_run(const MovedRun& moved) = 0;
  virtual void add_wait(const Wait& wait) = 0;
  virtual void add_letter(const DeadLetter& letter) = 0;
  // With its steps; of the letter that was added last.
  virtual void add_member(const DeadLetterMember& member, const DeadLetter& letter) = 0;
  virtual void add_token(const TokenRecord& token) = 0;
  virtual void add_record(const CatalogRecord& record) = 0;
  virtual void add_audit(const AuditEntry& entry) = 0;
};

// All that the interface tells of a store, which nobody may change meanwhile: everything but waits. Throws
// MigrationError.
void walk(Store& store, Sink& into);

}  // namespace latchkey::transfer
