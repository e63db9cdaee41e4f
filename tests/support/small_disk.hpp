// SmallDisk: a folder that can be filled to the last byte. Either a file system of 2 MiB of the test's own, mounted in
// a mount namespace of this process and its children (in a user namespace too, where that needs no rights), so nothing
// is left behind; or, on any machine, an ordinary folder and a library that is loaded into the programs under test and
// refuses to let its files grow (full_disk_shim.c). Make it while the process has one thread.
#pragma once

#include <string>
#include <vector>

namespace latchkey {

enum class DiskKind { mounted, pretended };

class SmallDisk {
 public:
  // `mounted` only where the machine lets us.
  static std::vector<DiskKind> possible_kinds();

  // On `folder`, which is made.
  SmallDisk(std::string folder, DiskKind kind);
  ~SmallDisk();
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  std::string file(const std::string& name) const { return folder_ + "/" + name; }
  // What the environment of programs on this disk must have: NAME=value.
  std::vector<std::string> environment() const;
  void fill() const;
  void make_room() const;
  // A shell command that fills it.
  std::string fill_command() const;

 private:
  std::string folder_;
  DiskKind kind_;
};

}  // namespace latchkey
