// FileWatch: whether a store's files are still those that were opened. A file that was removed, replaced or cut under
// its owner goes on taking writes without an error, and all of them are lost: so the owner looks before it commits.
// Three stat() calls, no descriptor: closing one of ours would drop the locks that SQLite holds on the file.
//
// It does not see what is written into a file that stays in place. Files that only a test's VFS knows are not watched.
// One thread at a time.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

namespace latchkey {

class FileWatch {
 public:
  // Absolute from the start: the process may change its folder.
  explicit FileWatch(const std::string& file);

  // The store's file, at the first call, and its log are from now on those that lie there.
  void note();
  // Why what is written now would be lost. None: they are in their places.
  std::optional<std::string> find_fault();
  // The same of the store's file alone: whoever opens it anew opens another one.
  std::optional<std::string> find_file_fault();

 private:
  struct Id {
    dev_t device{};
    ino_t inode{};
    bool operator==(const Id&) const = default;
  };
  struct Seen {
    Id id;
    off_t size = 0;
  };
  static std::optional<Seen> look_at(const std::string& path);

  std::string file_;
  std::optional<Seen> store_;  // it never shrinks
  std::optional<Id> log_;
};

// The log holds something and the file nothing: it was cut, or made anew beside the log of another. SQLite would delete
// that log.
bool is_log_without_store(const std::string& file);

}  // namespace latchkey
