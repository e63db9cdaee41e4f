#include "support/small_disk.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>

#include "base/assert.hpp"

namespace latchkey {
namespace {

// Enters a mount namespace of this process.
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

bool mount_on(const std::string& folder) {
  static const bool entered = enter_namespace();
  return entered && ::mount("small", folder.c_str(), "tmpfs", 0, "size=2m") == 0;
}

}  // namespace

std::vector<DiskKind> SmallDisk::possible_kinds() {
  const std::string folder =
      (std::filesystem::temp_directory_path() / ("latchkey-disk-" + std::to_string(::getpid()))).string();
  ::mkdir(folder.c_str(), 0700);
  std::vector<DiskKind> kinds{DiskKind::pretended};
  if (mount_on(folder)) {
    ::umount2(folder.c_str(), MNT_DETACH);
    kinds.push_back(DiskKind::mounted);
  }
  ::rmdir(folder.c_str());
  return kinds;
}

SmallDisk::SmallDisk(std::string folder, DiskKind kind) : folder_(std::move(folder)), kind_(kind) {
  ::mkdir(folder_.c_str(), 0700);
  if (kind_ == DiskKind::mounted) LK_ASSERT(mount_on(folder_));
}

SmallDisk::~SmallDisk() {
  if (kind_ == DiskKind::mounted) ::umount2(folder_.c_str(), MNT_DETACH);
}

std::vector<std::string> SmallDisk::environment() const {
  if (kind_ == DiskKind::mounted) return {};
  return {"LD_PRELOAD=" LATCHKEY_FULL_DISK_SHIM, "FULL_DISK=" + file("fill")};
}

void SmallDisk::fill() const {
  const int file = ::open(this->file("fill").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  static constexpr std::array<char, 4096> kNothing{};
  while (kind_ == DiskKind::mounted && ::write(file, kNothing.data(), kNothing.size()) > 0) {
  }
  ::close(file);
}

void SmallDisk::make_room() const { ::unlink(file("fill").c_str()); }

std::string SmallDisk::fill_command() const {
  if (kind_ == DiskKind::pretended) return ": > " + file("fill");
  return "cat /dev/zero > " + file("fill") + " 2> /dev/null";
}

}  // namespace latchkey
