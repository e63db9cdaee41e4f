#include "effects/process_supervisor.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <initializer_list>

#include "effects/descendants.hpp"

namespace latchkey {
namespace {

// All functions up to the end of ProcessSupervisor run in a fork of a process with threads: no allocation, no locks.

struct Start {
  char* const* arguments;
  char* const* environment;
  const SignalState* signals;
  int output;
  int errors;
};

[[noreturn]] void become_command(const Start& start, pid_t supervisor, int exec_failed) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != supervisor) ::_exit(1);  // the supervisor died before prctl()
  if (::dup2(start.output, STDOUT_FILENO) < 0 || ::dup2(start.errors, STDERR_FILENO) < 0) ::_exit(1);
  ::signal(SIGPIPE, start.signals->pipe_ignored ? SIG_IGN : SIG_DFL);
  ::signal(SIGXFSZ, start.signals->file_size_ignored ? SIG_IGN : SIG_DFL);
  ::sigprocmask(SIG_SETMASK, &start.signals->mask, nullptr);
  ::execvpe(start.arguments[0], start.arguments, start.environment);
  const int error = errno;
  if (::write(exec_failed, &error, sizeof error) != sizeof error) ::_exit(1);
  ::_exit(127);
}

class ProcessSupervisor {
 public:
  ProcessSupervisor(int socket, const Start& start) : socket_(socket), start_(start) {}

  [[noreturn]] void run() {
    sigset_t all;
    ::sigfillset(&all);
    ::sigprocmask(SIG_SETMASK, &all, nullptr);  // signals of the terminal are for the command
    ::signal(SIGCHLD, SIG_DFL);
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    start_command();
    sigset_t child;
    ::sigemptyset(&child);
    ::sigaddset(&child, SIGCHLD);
    child_ended_ = ::signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    for (;;) {
      reap();
      wait_for_event();
    }
  }

 private:
  void start_command() {
    int failed[2];
    if (::pipe2(failed, O_CLOEXEC) != 0) ::_exit(1);
    const pid_t self = ::getpid();
    command_ = ::fork();
    if (command_ == 0) become_command(start_, self, failed[1]);
    // The supervisor must not have descriptors open whose end another process waits for: pipes, terminals, locks.
    ::dup2(socket_, 0);
    ::dup2(failed[0], 1);
    ::close_range(2, ~0U, 0);
    socket_ = 0;
    int error = command_ < 0 ? errno : 0;
    if (command_ > 0 && ::read(1, &error, sizeof error) <= 0) error = 0;
    ::close(1);
    if (error == 0) return;
    if (command_ > 0) ::waitpid(command_, nullptr, 0);
    command_ = -1;
    send({SupervisorMessage::not_started, error});
  }

  void send(SupervisorMessage message) {
    if (::send(socket_, &message, sizeof message, MSG_NOSIGNAL) != sizeof message) kill_all();
  }

  void reap() {
    int status = 0;
    for (pid_t ended; (ended = ::waitpid(-1, &status, WNOHANG)) > 0;) {
      if (ended != command_) continue;  // an orphaned descendant of the command
      command_ = -1;
      if (WIFSIGNALED(status)) {
        send({SupervisorMessage::signalled, WTERMSIG(status)});
      } else {
        send({SupervisorMessage::exited, WEXITSTATUS(status)});
      }
    }
  }

  // Waits for a message of the parent or the end of a child.
  void wait_for_event() {
    pollfd waited[] = {{socket_, POLLIN, 0}, {child_ended_, POLLIN, 0}};
    if (::poll(waited, 2, -1) <= 0) return;
    signalfd_siginfo drained;
    while (::read(child_ended_, &drained, sizeof drained) > 0) {
    }
    if (waited[0].revents != 0) receive();
  }

  void receive() {
    SupervisorMessage message{};
    const ssize_t size = ::recv(socket_, &message, sizeof message, 0);
    if (size < 0 && errno == EINTR) return;
    if (size != sizeof message) kill_all();  // the parent has died
    switch (message.kind) {
      case SupervisorMessage::pass_signal:
        if (command_ > 0) ::kill(command_, message.value);
        return;
      case SupervisorMessage::signal_all:
        signal_descendants(message.value);
        signal_descendants(SIGCONT);  // a stopped process would not handle the signal
        return;
      case SupervisorMessage::leave_rest:
        ::_exit(0);
      default:
        kill_all();
    }
  }

  [[noreturn]] void kill_all() {
    if (command_ > 0) ::kill(command_, SIGKILL);
    while (signal_descendants(SIGKILL) > 0) {
      while (::waitpid(-1, nullptr, WNOHANG) > 0) {
      }
      ::poll(nullptr, 0, 1);
    }
    ::_exit(0);
  }

  int socket_;
  const Start& start_;
  pid_t command_ = -1;
  int child_ended_ = -1;
};

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

void close_all(std::initializer_list<int> files) {
  for (const int file : files)
    if (file >= 0) ::close(file);
}

}  // namespace

SignalState read_signal_state() {
  SignalState state;
  ::sigprocmask(SIG_SETMASK, nullptr, &state.mask);
  const auto is_ignored = [](int signal) {
    struct sigaction action {};
    ::sigaction(signal, nullptr, &action);
    return action.sa_handler == SIG_IGN;
  };
  state.pipe_ignored = is_ignored(SIGPIPE);
  state.file_size_ignored = is_ignored(SIGXFSZ);
  return state;
}

Result<SupervisedProcess> start_supervised(const std::vector<std::string>& arguments,
                                           const std::vector<std::string>& environment, const SignalState& signals) {
  int sockets[2] = {-1, -1}, output[2] = {-1, -1}, errors[2] = {-1, -1};
  const auto refuse = [&](int error) {
    close_all({sockets[0], sockets[1], output[0], output[1], errors[0], errors[1]});
    return fail(Code::INTERNAL, std::string("cannot start a process: ") + std::strerror(error));
  };
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0 || ::pipe2(output, O_CLOEXEC) != 0 ||
      ::pipe2(errors, O_CLOEXEC) != 0)
    return refuse(errno);
  const auto argument_pointers = pointers_to(arguments);
  const auto environment_pointers = pointers_to(environment);
  const Start start{argument_pointers.data(), environment_pointers.data(), &signals, output[1], errors[1]};
  const pid_t supervisor = ::fork();
  if (supervisor < 0) return refuse(errno);
  if (supervisor == 0) {
    ::close(sockets[0]);  // otherwise the supervisor would never read the socket's end
    ProcessSupervisor(sockets[1], start).run();
  }
  close_all({sockets[1], output[1], errors[1]});
  return SupervisedProcess{supervisor, sockets[0], output[0], errors[0]};
}

}  // namespace latchkey
