#include "support/terminal.hpp"

#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utility>

#include "base/assert.hpp"

namespace latchkey {

Terminal::Terminal(const ProcessSettings& settings) {
  std::vector<std::string> arguments = settings.arguments;
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  pid_ = ::forkpty(&file_, nullptr, nullptr, nullptr);
  LK_ASSERT(pid_ >= 0);
  if (pid_ > 0) return;
  for (const std::string& variable : settings.environment) {
    const auto equals = variable.find('=');
    ::setenv(variable.substr(0, equals).c_str(), variable.substr(equals + 1).c_str(), 1);
  }
  ::execv(pointers[0], pointers.data());
  ::_exit(127);
}

Terminal::~Terminal() {
  hang_up();
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

void Terminal::type(const std::string& keys) const {
  LK_ASSERT(::write(file_, keys.data(), keys.size()) == static_cast<ssize_t>(keys.size()));
}

bool Terminal::read_some() {
  if (file_ < 0) return false;
  pollfd waited{.fd = file_, .events = POLLIN, .revents = 0};
  if (::poll(&waited, 1, 20'000) != 1) return false;
  char bytes[4096];
  const ssize_t size = ::read(file_, bytes, sizeof bytes);  // EIO when the last process has closed it
  if (size > 0) seen_.append(bytes, static_cast<std::size_t>(size));
  return size > 0;
}

std::string Terminal::read_until(const std::string& text) {
  std::size_t at = 0;
  while ((at = seen_.find(text)) == std::string::npos)
    if (!read_some()) return std::exchange(seen_, {});
  std::string read = seen_.substr(0, at + text.size());
  seen_.erase(0, at + text.size());
  return read;
}

void Terminal::hang_up() {
  if (file_ >= 0) ::close(file_);
  file_ = -1;
}

int Terminal::finish() {
  while (read_some()) {
  }
  int status = 0;
  ::waitpid(std::exchange(pid_, -1), &status, 0);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace latchkey
