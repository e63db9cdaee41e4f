#include "support/folder_watch.hpp"

#include <poll.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/assert.hpp"

namespace latchkey {
namespace {

constexpr int kWaitMaxMs = 30'000;

}  // namespace

FolderWatch::FolderWatch(const std::string& folder) : changes_(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
  LK_ASSERT(changes_ >= 0);
  LK_ASSERT(::inotify_add_watch(changes_, folder.c_str(), IN_MODIFY | IN_CREATE | IN_CLOSE_WRITE) >= 0);
}

FolderWatch::~FolderWatch() { ::close(changes_); }

bool FolderWatch::wait(pid_t program, const std::function<bool()>& condition) const {
  const int process = static_cast<int>(::syscall(SYS_pidfd_open, program, 0));
  LK_ASSERT(process >= 0);
  bool is_true = false;
  while (!(is_true = condition())) {
    pollfd files[] = {{changes_, POLLIN, 0}, {process, POLLIN, 0}};
    if (::poll(files, 2, kWaitMaxMs) <= 0 || files[1].revents != 0) break;
    char events[4096];
    while (::read(changes_, events, sizeof events) > 0) {
    }
  }
  ::close(process);
  return is_true;
}

}  // namespace latchkey
