// ServerAddressFile: what a server on PostgreSQL leaves in its data folder, DIR/postgres.server: its address, so that
// commands with the same --data-dir speak to it instead of beginning a store of their own there and doing everything
// again. The file stays when the server ends; then commands refuse. Whose address it is holds a lock on it (fcntl's, of
// the open file), which the kernel frees however the server dies. Several servers may share the folder: one has the
// post, and another takes it over within a second when that ends.
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
  // Errors are logged: a folder that cannot be written lets nobody begin a store in it either.
  ServerAddressFile(const std::string& data_dir, std::string address);
  ~ServerAddressFile();

  struct Found {
    std::optional<std::string> address;  // none: its server has ended
  };
  // None: no server on PostgreSQL has used this folder.
  static std::optional<Found> find(const std::string& data_dir);
  // The folder is an embedded store's again. STORE_LOCKED when a server on PostgreSQL runs from it.
  static Result<void> remove(const std::string& data_dir);
  static std::string path_in(const std::string& data_dir);

 private:
  void work();
  Result<void> ensure_written();

  const std::string path_;
  const std::string address_;
  int file_ = -1;  // has the lock, when it is open
  std::mutex mutex_;
  std::condition_variable changed_;
  bool closing_ = false;
  std::thread thread_;
};

// Whether the folder has an embedded store that was not moved to PostgreSQL: then commands go on using that.
bool has_store_of_its_own(const std::string& data_dir);

}  // namespace latchkey
