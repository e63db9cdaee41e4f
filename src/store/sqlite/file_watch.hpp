// FileWatch: finds out whether the files of a store are still those that were opened. Writes into a file that was
// removed or replaced succeed and are lost, so the store checks before each commit. A check is three stat() calls and
// opens no descriptor: closing one would drop the locks that SQLite has on the file.
//
// It does not detect foreign writes into the file itself. Files of a test's VFS are not watched. One thread at a time.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

namespace latchkey {

class FileWatch {
 public:
  // Makes the path absolute: the process may change its working folder.
  explicit FileWatch(const std::string& file);

  // Records the log, and at the first call also the store's file, as those to be expected.
  void note();
  // The reason why writes would be lost; none if both files are in place.
  std::optional<std::string> find_fault();
  // The same for the store's file only: opening the path again would open another file.
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
  static std::optional<Seen> stat_file(const std::string& path);

  std::string file_;
  std::optional<Seen> store_;  // with its largest size: a store's file does not shrink
  std::optional<Id> log_;
};

// True if the log has content and the file has none: the file was cut, or created beside the log of another file.
// SQLite would delete that log.
bool is_log_without_store(const std::string& file);

}  // namespace latchkey
