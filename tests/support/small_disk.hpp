// SmallDisk: a file system of 2 MiB of the test's own, on a folder, that can be filled to the last byte. Mounted in a
// mount namespace of this process and its children (in a user namespace too, where that needs no rights), so nothing
// is left behind. Make it while the process has one thread.
#pragma once

#include <string>

namespace latchkey {

class SmallDisk {
 public:
  // On `folder`, which is made.
  explicit SmallDisk(std::string folder);
  ~SmallDisk();
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  // False where the machine lets nobody mount.
  bool is_mounted() const { return mounted_; }
  std::string file(const std::string& name) const { return folder_ + "/" + name; }
  void fill() const;
  void make_room() const;
  // A shell command that fills it.
  std::string fill_command() const;

 private:
  std::string folder_;
  bool mounted_ = false;
};

}  // namespace latchkey
