// ServerAddressFile: the file DIR/postgres.server, in which a server on PostgreSQL writes its address. Commands with
// the same --data-dir then use that server, instead of creating an embedded store in the folder and running everything
// again.
//
// The server locks the file (an fcntl lock of the open file), and the kernel releases the lock when the server dies.
// The file remains after the server has ended; commands then refuse to run. Several servers may share the folder: one
// of them has the lock, and another acquires it within a second after that one has ended.
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/error.hpp"

namespace latchkey {

class ServerAddressFile {
 public:
  // Errors are only logged: in a folder that is not writable no command can create a store either.
  ServerAddressFile(const std::string& data_dir, std::string address);
  ~ServerAddressFile();

  struct Found {
    std::optional<std::string> address;  // none: the server has ended
  };
  // None if no server on PostgreSQL has used this folder.
  static std::optional<Found> find(const std::string& data_dir);
  // Removes the file, so that the folder can contain an embedded store. STORE_LOCKED while a server on PostgreSQL uses
  // the folder.
  static Result<void> remove(const std::string& data_dir);
  static std::string path_in(const std::string& data_dir);

 private:
  void work();
  Result<void> ensure_written();

  const std::string path_;
  const std::string address_;
  int file_ = -1;  // open while this server has the lock
  std::mutex mutex_;
  std::condition_variable changed_;
  bool closing_ = false;
  std::thread thread_;
};

// True if the folder has an embedded store that was not transferred to PostgreSQL. Commands continue to use that store.
bool has_store_of_its_own(const std::string& data_dir);

}  // namespace latchkey
