// StoreVisitor: takes all that a store holds, piece by piece, in one order: runs from the newest, waits by their ends, dead
// letters from the newest with their members by place, tokens by id.
#pragma once

#include "store/dead_letters.hpp"
#include "store/store.hpp"
#include "store/token_store.hpp"

namespace latchkey::transfer {

struct TransferredRun {
  Run run;
  bool has_key = false;  // it is its key's latest
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
  // With its steps; of the letter that was added last.
  virtual void add_member(const DeadLetterMember& member, const DeadLetter& dead_letter) = 0;
  virtual void add_token(const TokenRecord& token) = 0;
};

// All that the interface tells of a store, which nobody may change meanwhile: everything but waits. Throws
// MigrationError.
void walk(Store& store, StoreVisitor& into);

}  // namespace latchkey::transfer
