// Opening a store whose disk is full. SQLite needs 32 KiB for the index of its log before it can read, and reports a
// full disk there as an I/O error. The store is then opened with this index in memory: reads and replays work, and
// writes get STORE_FULL. Other processes cannot read the file while it is open in this way.
#pragma once

#include "store/sqlite/sqlite_store.hpp"

namespace latchkey {

// True if the disk of this file has no room for the log's index. Writes a temporary file, because quotas and reserved
// blocks falsify the free space that a file system reports.
bool is_disk_full(const std::string& store_file);

// Returns STORE_FULL for an error whose reason is a full disk, other errors unchanged.
Error explain_full_disk(Error error, const std::string& store_file);

// SqliteStore::open(), with the log's index in memory if the disk is full. STORE_FULL if the store does not exist yet.
Result<std::unique_ptr<SqliteStore>> open_even_if_full(SqliteSettings settings, Clock& clock, Random& random);

}  // namespace latchkey
