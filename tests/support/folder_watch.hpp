// FolderWatch: waits until a program has written a text into a file of a folder. It uses inotify and does not poll.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

namespace latchkey {

class FolderWatch {
 public:
  // Watches the folder from now on.
  explicit FolderWatch(const std::string& folder);
  ~FolderWatch();
  FolderWatch(const FolderWatch&) = delete;
  FolderWatch& operator=(const FolderWatch&) = delete;

  // Checks the condition after each change until it is true. Returns false if the program ends first, or if no file
  // changes for half a minute.
  bool wait(pid_t program, const std::function<bool()>& condition) const;

 private:
  int changes_;
};

}  // namespace latchkey
