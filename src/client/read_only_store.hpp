// ReadOnlyStore: reads of an embedded store whose file or folder this user may not write. The file must have been
// closed cleanly: without write access SQLite cannot read changes that are only in the log. Deadlines that have passed
// are not applied. Other commands wait until the object is destroyed. One thread at a time.
#pragma once

#include <memory>
#include <string>

#include "base/clock.hpp"
#include "store/sqlite/key_window.hpp"
#include "store/sqlite/sqlite_reader.hpp"

namespace latchkey {

class ReadOnlyStore {
 public:
  // True if the file exists and this user may read it, but cannot open it as a store.
  static bool is_needed(const std::string& file);
  // STORE_UNAVAILABLE when the log has changes, STORE_LOCKED when a command uses the store for more than 10 s,
  // STORE_MOVED and STORE_FORMAT as for any opening.
  static Result<std::unique_ptr<ReadOnlyStore>> open(const std::string& file, Clock& clock);
  ~ReadOnlyStore();
  ReadOnlyStore(const ReadOnlyStore&) = delete;
  ReadOnlyStore& operator=(const ReadOnlyStore&) = delete;

  SqliteReader& reader() { return *reader_; }

 private:
  explicit ReadOnlyStore(int lock) : lock_(lock) {}

  int lock_;          // -1: the lock file is missing or cannot be read
  KeyWindow window_;  // empty: a store that was closed has all keys in its file
  std::unique_ptr<SqliteReader> reader_;
};

}  // namespace latchkey
