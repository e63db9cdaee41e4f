// SmallDisk: a folder that a test can fill completely. `mounted` is a file system of 2 MiB in a mount namespace of this
// process and its children (also in a user namespace, if that needs no rights), so nothing remains after the test.
// `pretended` works on any machine: an ordinary folder, and a library that is loaded into the tested programs and
// rejects writes that make its files longer (full_disk_shim.c). Construct it while the process has one thread.
#pragma once

#include <string>
#include <vector>

namespace latchkey {

enum class DiskKind { mounted, pretended };

class SmallDisk {
 public:
  // `mounted` only if this process may mount.
  static std::vector<DiskKind> possible_kinds();

  // Creates `folder`.
  SmallDisk(std::string folder, DiskKind kind);
  ~SmallDisk();
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  std::string file(const std::string& name) const { return folder_ + "/" + name; }
  // Environment variables for programs that use this disk: NAME=value.
  std::vector<std::string> environment() const;
  void fill() const;
  void make_room() const;
  // A shell command that fills the disk.
  std::string fill_command() const;

 private:
  std::string folder_;
  DiskKind kind_;
};

}  // namespace latchkey
