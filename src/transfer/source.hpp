// Source: the SQLite store that is moved, under its lock: nobody else opens it meanwhile, and nothing in it changes.
//
// Throws MigrationError: NOT_FOUND when there is no file, STORE_LOCKED when somebody owns it, STORE_FORMAT when it is
// no store of this version. A file that is refused is not touched.
#pragma once

#include "base/clock.hpp"
#include "base/random.hpp"
#include "store/sqlite/transfer_status.hpp"
#include "store/sqlite/sqlite_store.hpp"
#include "store/sqlite/store_lock.hpp"
#include "transfer/store_visitor.hpp"

namespace latchkey::transfer {

// What goes on rising wherever the store lies.
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

  const std::optional<TransferStatus>& mark() const { return mark_; }
  const Marks& marks() const { return marks_; }
  // The user's tables beside Latchkey's.
  const std::vector<std::string>& own_tables() const { return own_tables_; }

  void walk(StoreVisitor& into);
  std::vector<TokenRecord> list_tokens();

  // The store is closed from here on; the lock stays.
  void write_mark(const TransferStatus& mark);
  void erase_mark();

 private:
  void look();

  const std::string file_;
  std::optional<StoreLock> lock_;  // let go after the store is closed
  std::unique_ptr<SqliteStore> store_;
  std::optional<TransferStatus> mark_;
  Marks marks_;
  std::vector<std::string> own_tables_;
};

}  // namespace latchkey::transfer
