// transfer_store: copies an SQLite store into PostgreSQL, verifies the copy and marks the file as moved.
//
//   lock the file ─▶ copy and read back, one transaction ─▶ mark: begun ─▶ COMMIT ─▶ mark: finished
//
// Guarantees: the copy is whole and equal, or there is none; at no moment are both stores open to others once the copy
// is committed (unless the file is kept on purpose). A move that was cut off anywhere is run again: before the mark
// nothing has happened; behind it the file stays shut, and the repeat finds the copy by its hash, or makes it.
// Ids, fences and the store's time go on above what they were.
//
// It does not: move a user's own tables in the file, or start a server.
// Failure: an Error; see docs/move.md for which. Blocks; one thread.
#pragma once

#include <functional>

#include "transfer/source.hpp"
#include "transfer/tally.hpp"

namespace latchkey::transfer {

enum class Doing { copying, verifying, committing };

struct TransferSettings {
  std::string file;    // of the SQLite store
  std::string url;     // postgres://…
  bool keeps = false;  // the file is not marked, and goes on being used
  // How many runs so far; now and then. With `committing` once, before the file is marked: until then nothing happened.
  std::function<void(Doing, std::uint64_t runs)> on_progress = [](Doing, std::uint64_t) {};
};

struct TransferReport {
  std::string place;  // host:port,…/database
  Summary source;
  std::optional<Summary> target;  // none: the copy was there, from an earlier move that was verified then
  bool is_marked = false;
  std::vector<std::string> not_moved;  // the user's own tables
};

// NOT_FOUND, STORE_LOCKED, STORE_FORMAT, STORE_MOVED, STORE_NOT_EMPTY, SCHEMA_OLDER, SCHEMA_NEWER, COPY_DIFFERS, USAGE,
// STORE_FULL, STORE_UNAVAILABLE.
Result<TransferReport> transfer_store(const TransferSettings& settings, Clock& clock, Random& random);

// Opens a file that was marked: the copy, if there is one, must not be used. False: there was no mark.
Result<bool> unmark_store(const std::string& file, Clock& clock, Random& random);

// What a store holds; without waits, which its interface does not tell.
Result<Summary> summarise(Store& store);

}  // namespace latchkey::transfer
