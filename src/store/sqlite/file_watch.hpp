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

// The reason why writes would be lost.
struct FileFault {
  bool is_log = false;    // of the -wal, not of the store's file
  const char* what = "";  // "was removed"
};
// Without the path: callers over HTTP must not learn it.
std::string to_string(const FileFault& fault);

class FileWatch {
 public:
  // Makes the path absolute: the process may change its working folder.
  explicit FileWatch(const std::string& file);

  // Records the log, and at the first call also the store's file, as those to be expected.
  void note();
  // The reason why writes would be lost; none if both files are in place.
  std::optional<FileFault> find_fault();
  // The same for the store's file only: opening the path again would open another file.
  std::optional<FileFault> find_file_fault();
  // The path of the file that the fault is about.
  std::string path_of(const FileFault& fault) const;

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
