#include "support/postgres/pg_program.hpp"

#include <fcntl.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <stdexcept>

namespace latchkey {

std::string pg_program(const std::string& name) { return "/usr/lib/postgresql/15/bin/" + name; }

// PostgreSQL refuses to run as root, so root switches to the package's user.
pid_t start_pg_program(std::vector<std::string> arguments, const std::string& log) {
  std::vector<char*> words;
  for (std::string& word : arguments) words.push_back(word.data());
  words.push_back(nullptr);
  const passwd* user = ::geteuid() == 0 ? ::getpwnam("postgres") : nullptr;
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  const int out = ::open(log.c_str(), O_CREAT | O_WRONLY | O_APPEND, 0666);
  ::dup2(out, 1);
  ::dup2(out, 2);
  if (user && (::setgid(user->pw_gid) != 0 || ::setuid(user->pw_uid) != 0)) ::_exit(126);
  ::prctl(PR_SET_PDEATHSIG, SIGQUIT);
  if (::getppid() != parent) ::_exit(126);
  ::execv(words.front(), words.data());
  ::_exit(127);
}

int wait_for_program(pid_t pid) {
  int status = 0;
  ::waitpid(pid, &status, 0);
  return status;
}

void run_pg_program(std::vector<std::string> arguments, const std::string& log) {
  const std::string name = arguments.front();
  if (wait_for_program(start_pg_program(std::move(arguments), log)) == 0) return;
  std::ifstream out(log);
  throw std::runtime_error(name + " failed: " + std::string(std::istreambuf_iterator<char>(out), {}));
}

}  // namespace latchkey
