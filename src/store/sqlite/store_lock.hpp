// StoreLock: who owns an SQLite store. A lock on FILE.lock, beside the file and not on it: a server keeps it while it
// runs and writes its address there; a command without a server takes it per transaction and never while its child
// runs. The kernel frees it when the owner dies, however it dies.
#pragma once

#include <optional>
#include <string>

#include "base/clock.hpp"
#include "base/error.hpp"

namespace latchkey {

class StoreLock {
 public:
  // Waits up to `patience` for another owner to let go; STORE_LOCKED if it does not, or at once if a server has it.
  static Result<StoreLock> acquire(const std::string& store_file, Duration patience, Clock& clock);
  // The address that the server which owns the store has written; none when no server owns it now.
  static std::optional<std::string> find_server(const std::string& store_file);

  StoreLock(StoreLock&& other) noexcept;
  StoreLock& operator=(StoreLock&& other) noexcept;
  ~StoreLock();

  // "http://127.0.0.1:7420": from now on commands speak to this server. Withdrawn when the lock is let go.
  Result<void> announce(const std::string& address);

 private:
  enum class Held : bool { no, yes };
  StoreLock(int file, Held held) : file_(file), held_(held) {}
  int file_ = -1;
  Held held_ = Held::no;
};

}  // namespace latchkey
