// Source: the SQLite store that is transferred. It is locked, so no other process opens or changes it meanwhile.
//
// Throws MigrationError: NOT_FOUND when there is no file, STORE_LOCKED when another process owns the store,
// STORE_FORMAT when the file is not a store of this version. A refused file is not changed.
#pragma once

#include "base/clock.hpp"
#include "base/random.hpp"
#include "store/sqlite/sqlite_store.hpp"
#include "store/sqlite/store_lock.hpp"
#include "store/sqlite/transfer_status.hpp"
#include "transfer/store_visitor.hpp"

namespace latchkey::transfer {

// The marks that must continue to rise in the copy.
struct Marks {
  std::int64_t counter = 0;  // in ids
  std::int64_t fence = 0;
  std::int64_t clock_ms = 0;
  std::int64_t purged = 0;
};

class Source {
 public:
  Source(std::string file, Clock& clock, Random& random);
  ~Source();

  const std::optional<TransferStatus>& status() const { return status_; }
  const Marks& marks() const { return marks_; }
  // The names of the user's own tables.
  const std::vector<std::string>& own_tables() const { return own_tables_; }

  void walk(StoreVisitor& into);
  std::vector<TokenRecord> list_tokens();

  // These close the store; the lock stays.
  void write_status(const TransferStatus& mark);
  void erase_status();

 private:
  void read_file();

  const std::string file_;
  std::optional<StoreLock> lock_;  // released after the store is closed
  std::unique_ptr<SqliteStore> store_;
  std::optional<TransferStatus> status_;
  Marks marks_;
  std::vector<std::string> own_tables_;
};

}  // namespace latchkey::transfer
