// FolderWatch: waits for a program to say something in a file of a folder, without looking again and again.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

namespace latchkey {

class FolderWatch {
 public:
  // What is written in the folder from now on is not missed.
  explicit FolderWatch(const std::string& folder);
  ~FolderWatch();
  FolderWatch(const FolderWatch&) = delete;
  FolderWatch& operator=(const FolderWatch&) = delete;

  // Asks after each change until it is so. False when the program ends first, or nothing changes for half a minute.
  bool wait(pid_t program, const std::function<bool()>& is_so) const;

 private:
  int changes_;
};

}  // namespace latchkey
