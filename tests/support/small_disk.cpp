#include "support/small_disk.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <fstream>

namespace latchkey {
namespace {

// Our own mounts, once per process.
bool enter_namespace() {
  const uid_t user = ::getuid();
  const gid_t group = ::getgid();
  if (::unshare(CLONE_NEWNS) != 0) {
    if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
    std::ofstream("/proc/self/setgroups") << "deny";
    std::ofstream("/proc/self/uid_map") << "0 " << user << " 1";
    std::ofstream("/proc/self/gid_map") << "0 " << group << " 1";
  }
  return ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
}

}  // namespace

SmallDisk::SmallDisk(std::string folder) : folder_(std::move(folder)) {
  static const bool entered = enter_namespace();
  ::mkdir(folder_.c_str(), 0700);
  mounted_ = entered && ::mount("small", folder_.c_str(), "tmpfs", 0, "size=2m") == 0;
}

SmallDisk::~SmallDisk() {
  if (mounted_) ::umount2(folder_.c_str(), MNT_DETACH);
}

void SmallDisk::fill() const {
  const int file = ::open(this->file("fill").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  static constexpr std::array<char, 4096> kNothing{};
  while (::write(file, kNothing.data(), kNothing.size()) > 0) {
  }
  ::close(file);
}

void SmallDisk::make_room() const { ::unlink(file("fill").c_str()); }

std::string SmallDisk::fill_command() const { return "cat /dev/zero > " + file("fill") + " 2> /dev/null"; }

}  // namespace latchkey
