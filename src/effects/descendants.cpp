#include "effects/descendants.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace latchkey {
namespace {

constexpr int kProcessesMax = 65'536;

struct Process {
  pid_t pid;
  pid_t parent;
  bool ended;
  bool below;
};
// Too large for the stack. Only the pages with entries are used.
Process processes[kProcessesMax];

bool read_process(int proc, const char* name, Process& process) {
  char path[64] = {};
  std::strncpy(path, name, 32);
  std::strcat(path, "/stat");
  const int file = ::openat(proc, path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  char text[512];
  const ssize_t size = ::read(file, text, sizeof text - 1);
  ::close(file);
  if (size <= 0) return false;
  text[size] = '\0';
  // "pid (name) state parent …". The name may contain any character.
  const char* const rest = std::strrchr(text, ')');
  if (rest == nullptr || rest[1] == '\0' || rest[2] == '\0') return false;
  process = {static_cast<pid_t>(std::atoi(name)), static_cast<pid_t>(std::atoi(rest + 4)),
             rest[2] == 'Z' || rest[2] == 'X', false};
  return true;
}

int list_processes() {
  const int proc = ::open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (proc < 0) return 0;
  int count = 0;
  alignas(dirent64) char entries[16'384];
  for (long size; (size = ::syscall(SYS_getdents64, proc, entries, sizeof entries)) > 0;) {
    for (long at = 0; at < size;) {
      const auto* entry = reinterpret_cast<const dirent64*>(entries + at);
      at += entry->d_reclen;
      if (entry->d_name[0] < '0' || entry->d_name[0] > '9' || count == kProcessesMax) continue;
      if (read_process(proc, entry->d_name, processes[count])) ++count;
    }
  }
  ::close(proc);
  return count;
}

bool is_below(const Process& process, pid_t self, int count) {
  if (process.parent == self) return true;
  for (int i = 0; i < count; ++i)
    if (processes[i].pid == process.parent) return processes[i].below;
  return false;
}

}  // namespace

int signal_descendants(int signal) {
  const int count = list_processes();
  const pid_t self = ::getpid();
  // A child may be listed before its parent, so the loop repeats until no process is added.
  for (bool added = true; added;) {
    added = false;
    for (int i = 0; i < count; ++i) {
      if (processes[i].below || !is_below(processes[i], self, count)) continue;
      processes[i].below = added = true;
    }
  }
  int reached = 0;
  for (int i = 0; i < count; ++i)
    if (processes[i].below && !processes[i].ended && ::kill(processes[i].pid, signal) == 0) ++reached;
  return reached;
}

}  // namespace latchkey
