// transfer_store: copies an SQLite store into PostgreSQL, verifies the copy and writes the file's transfer status.
//
//   lock the file ─▶ copy and read back, one transaction ─▶ status: begun ─▶ COMMIT ─▶ status: moved
//
// Guarantees: the copy is complete and equal, or there is none. When the copy is committed, the file cannot be opened
// any more (unless the file is left in use on purpose). An interrupted transfer can be run again: before the first
// status, nothing has changed; after it, the file stays closed, and the next transfer finds the copy by its hash or
// makes it. Ids, fences and the store's clock continue above the file's.
//
// It does not copy a user's own tables in the file, and it does not start a server.
// Failure: an Error; see docs/move.md for which. Blocks; one thread.
#pragma once

#include <functional>

#include "transfer/source.hpp"
#include "transfer/tally.hpp"

namespace latchkey::transfer {

enum class TransferPhase { copying, verifying, committing };

struct TransferSettings {
  std::string file;                 // of the SQLite store
  std::string url;                  // postgres://…
  bool leaves_file_in_use = false;  // no transfer status is written
  // Called periodically with the number of runs. Called once with `committing`, before the transfer status is written;
  // until then nothing has changed.
  std::function<void(TransferPhase, std::uint64_t runs)> on_progress = [](TransferPhase, std::uint64_t) {};
};

struct TransferReport {
  std::string address;  // host:port,…/database
  Summary source;
  std::optional<Summary> target;  // none: an earlier transfer has made and verified the copy
  bool is_file_closed = false;
  std::vector<std::string> not_moved;  // the user's own tables
};

// NOT_FOUND, STORE_LOCKED, STORE_FORMAT, STORE_MOVED, STORE_NOT_EMPTY, SCHEMA_OLDER, SCHEMA_NEWER, COPY_DIFFERS, USAGE,
// STORE_FULL, STORE_UNAVAILABLE.
Result<TransferReport> transfer_store(const TransferSettings& settings, Clock& clock, Random& random);

// Removes a file's transfer status, so that the file can be used again; a copy must not be used then. False if the file
// has none.
Result<bool> reopen_file(const std::string& file, Clock& clock, Random& random);

// The summary of a store's content, without waits, which its interface does not list.
Result<Summary> summarise(Store& store);

}  // namespace latchkey::transfer
