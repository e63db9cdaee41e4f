// StoreLock: the ownership of an SQLite store. It is a lock on FILE.lock, beside the store's file. A server has the
// lock while it runs; a command without a server acquires it per transaction and never while its child runs. The kernel
// releases it when the owner dies. A server also writes its address into FILE.lock, with a second lock on that file
// (fcntl, open file description): without the second lock, the address is of a server that has died.
//
// FILE.lock can be removed or replaced while it is locked, so the store's file is locked as well (flock, which SQLite
// does not use). A process owns the store only with both locks. A server restores FILE.lock by restore_lock_file().
// Acquire the lock before the store is opened and release it after the store is closed: closing any descriptor of the
// store's file drops the locks that SQLite has on it in this process.
//
// FILE.lock also records that FILE has been a store, so that a file that was cut to nothing is not used as a new store.
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
  // Waits up to `patience` for another owner; then STORE_LOCKED, or at once if the owner is a server. Creates the
  // store's file, empty, if it is missing. STORE_FORMAT if the file was a store and is empty now.
  static Result<StoreLock> acquire(const std::string& store_file, Duration patience, Clock& clock);
  // The address of the server that owns the store; none if no server owns it.
  static std::optional<std::string> find_server(const std::string& store_file);

  StoreLock(StoreLock&& other) noexcept = default;
  StoreLock& operator=(StoreLock&& other) noexcept = default;
  ~StoreLock();

  // Records that the file is a store. To be called when the store was opened, before announce().
  void record_store();
  // From now on commands send their requests to this address ("http://127.0.0.1:7420"), until the lock is released.
  Result<void> announce(const std::string& address);
  // Creates FILE.lock again, with the address, if it was removed or replaced. To be called periodically.
  Result<void> restore_lock_file();

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
  // None if another process has the lock.
  static Result<std::optional<File>> try_beside(const std::string& store_file);
  static Result<std::optional<StoreLock>> try_both(const std::string& store_file);

  std::string store_file_;
  std::string address_;
  File store_;
  File beside_;  // released first
};

}  // namespace latchkey
