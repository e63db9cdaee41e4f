#include "support/process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "base/assert.hpp"

namespace latchkey {
namespace {

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

void close_file(int& file) {
  if (file >= 0) ::close(file);
  file = -1;
}

// Reads once; closes at the end of the stream.
void read_some(int& file, std::string& into) {
  char bytes[65'536];
  const ssize_t size = ::read(file, bytes, sizeof bytes);
  if (size > 0) into.append(bytes, static_cast<std::size_t>(size));
  if (size == 0 || (size < 0 && errno != EINTR)) close_file(file);
}

}  // namespace

Process::Process(const ProcessSettings& settings) {
  int in[2], from_out[2], from_err[2];
  LK_ASSERT(::pipe2(in, O_CLOEXEC) == 0 && ::pipe2(from_out, O_CLOEXEC) == 0 && ::pipe2(from_err, O_CLOEXEC) == 0);
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_adddup2(&files, in[0], 0);
  ::posix_spawn_file_actions_adddup2(&files, from_out[1], 1);
  ::posix_spawn_file_actions_adddup2(&files, from_err[1], 2);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t all, none;
  ::sigfillset(&all);
  ::sigemptyset(&none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);

  std::vector<std::string> arguments = settings.arguments;
  std::vector<std::string> environment = settings.environment;
  for (char** variable = ::environ; *variable != nullptr; ++variable)
    if (!std::string(*variable).starts_with("LATCHKEY_")) environment.emplace_back(*variable);
  const int error = ::posix_spawn(&pid_, arguments[0].c_str(), &files, &attributes, pointers_to(arguments).data(),
                                  pointers_to(environment).data());
  LK_ASSERT(error == 0);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&files);
  ::close(in[0]);
  ::close(from_out[1]);
  ::close(from_err[1]);
  in_ = in[1];
  out_ = from_out[0];
  err_ = from_err[0];
}

Process::~Process() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  close_file(in_);
  close_file(out_);
  close_file(err_);
}

void Process::write(const std::string& bytes) {
  LK_ASSERT(::write(in_, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
}

void Process::close_input() { close_file(in_); }

void Process::signal(int number) const { ::kill(pid_, number); }

bool Process::pump() {
  pollfd waited[] = {{out_, POLLIN, 0}, {err_, POLLIN, 0}};
  if (out_ < 0 && err_ < 0) return false;
  ::poll(waited, 2, -1);
  if (waited[0].revents != 0) read_some(out_, out);
  if (waited[1].revents != 0) read_some(err_, err);
  return true;
}

std::string Process::read_line() {
  std::size_t end;
  while ((end = out.find('\n', lines_read_)) == std::string::npos && out_ >= 0) pump();
  std::string line = out.substr(lines_read_, end == std::string::npos ? end : end - lines_read_);
  lines_read_ = end == std::string::npos ? out.size() : end + 1;
  return line;
}

int Process::finish() {
  close_input();
  while (pump()) {
  }
  int status = 0;
  LK_ASSERT(::waitpid(pid_, &status, 0) == pid_);
  pid_ = -1;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

ExitWatch::ExitWatch(pid_t pid) : file_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))) {}

ExitWatch::~ExitWatch() { close_file(file_); }

bool ExitWatch::wait() const {
  pollfd waited{file_, POLLIN, 0};
  return file_ < 0 || ::poll(&waited, 1, 20'000) == 1;
}

bool ExitWatch::has_ended() const {
  pollfd waited{file_, POLLIN, 0};
  return file_ < 0 || ::poll(&waited, 1, 0) == 1;
}

}  // namespace latchkey
