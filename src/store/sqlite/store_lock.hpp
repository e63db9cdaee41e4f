// StoreLock: who owns an SQLite store. A lock on FILE.lock, beside the file, where a server writes its address; a
// server keeps it while it runs, a command without a server takes it per transaction and never while its child runs.
// The kernel frees it when the owner dies, however it dies. With its address a server takes a second lock on FILE.lock
// (fcntl's, of the open file): an address without that is what a dead server left.
//
// FILE.lock can be removed or replaced under its owner, so the store file itself is locked as well (flock, which SQLite
// does not use): whoever has FILE.lock without that owns nothing. A server puts FILE.lock back by restore_file(). Take
// it before the store is opened and let it go after the store is closed: closing any descriptor of the store file drops
// the locks that SQLite has on it in this process.
//
// FILE.lock also says whether FILE has ever been a store: one that was cut to nothing is not taken for a new one.
//
// One thread at a time.
#pragma once

#include <optional>
#include <string>

#include "base/clock.hpp"
#include "base/error.hpp"

namespace latchkey {

class StoreLock {
 public:
  // Waits up to `patience` for another owner to let go; STORE_LOCKED if it does not, or at once if a server has it.
  // Makes the store file, empty, when it is missing. STORE_FORMAT when it was a store and is empty now.
  static Result<StoreLock> acquire(const std::string& store_file, Duration patience, Clock& clock);
  // The address that the server which owns the store has written; none when no server owns it now.
  static std::optional<std::string> find_server(const std::string& store_file);

  StoreLock(StoreLock&& other) noexcept = default;
  StoreLock& operator=(StoreLock&& other) noexcept = default;
  ~StoreLock();

  // To be called once the store was opened, before announce().
  void mark_made();
  // "http://127.0.0.1:7420": from now on commands speak to this server. Withdrawn when the lock is let go.
  Result<void> announce(const std::string& address);
  // Makes FILE.lock again if it is gone or another one, with the address in it. To be called now and then.
  Result<void> restore_file();

 private:
  // A descriptor that closes itself.
  class File {
   public:
    explicit File(int number = -1) : number_(number) {}
    File(File&& other) noexcept;
    File& operator=(File&& other) noexcept;
    ~File();
    int number() const { return number_; }

   private:
    int number_;
  };

  StoreLock(std::string store_file, File beside, File store)
      : store_file_(std::move(store_file)), store_(std::move(store)), beside_(std::move(beside)) {}
  // None: somebody else has it.
  static Result<std::optional<File>> try_beside(const std::string& store_file);
  static Result<std::optional<StoreLock>> try_both(const std::string& store_file);

  std::string store_file_;
  std::string address_;
  File store_;
  File beside_;  // let go first
};

}  // namespace latchkey
