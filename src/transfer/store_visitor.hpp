// StoreVisitor: receives the whole content of a store in a fixed order: runs from the newest, waits by their
// predecessor and dependent, dead letters from the newest with their members by position, tokens by id.
#pragma once

#include "store/dead_letters.hpp"
#include "store/store.hpp"
#include "store/token_store.hpp"

namespace latchkey::transfer {

struct TransferredRun {
  Run run;
  bool has_key = false;  // it is the latest run of its key
  std::optional<Duplicates> duplicates;
};

struct Wait {
  std::int64_t predecessor = 0;  // the counters in their ids
  std::int64_t dependent = 0;
  RunId run;  // the dependent
};

class StoreVisitor {
 public:
  virtual ~StoreVisitor() = default;
  virtual void add_run(const TransferredRun& moved) = 0;
  virtual void add_wait(const Wait& wait) = 0;
  virtual void add_dead_letter(const DeadLetter& dead_letter) = 0;
  // With its steps; a member of the dead letter that was added last.
  virtual void add_member(const DeadLetterMember& member, const DeadLetter& dead_letter) = 0;
  virtual void add_token(const TokenRecord& token) = 0;
};

// Passes the content of a store to the visitor: everything but waits, which the interface does not list. The store must
// not change meanwhile. Throws MigrationError.
void walk(Store& store, StoreVisitor& into);

}  // namespace latchkey::transfer
