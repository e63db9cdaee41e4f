#include "effects/command.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "effects/stored_output.hpp"

namespace latchkey {
namespace {

constexpr auto kQuietly = asio::as_tuple(asio::use_awaitable);
// The supervisor itself was killed, and the command with it. No exit status has this form.
constexpr SupervisorMessage kSupervisorLost{SupervisorMessage::kill_rest, 0};
// A writable pipe accepts this many bytes without blocking.
constexpr std::size_t kPieceMax = 4096;
constexpr Duration kRetryDelay{2};

bool is_writable(int file) {
  pollfd waited{file, POLLOUT, 0};
  return ::poll(&waited, 1, 0) != 0;
}

// Writes without blocking the thread. It does not use O_NONBLOCK, which would affect other processes with the same
// terminal or pipe. Returns 0 or the errno: EPIPE if the reader has closed the pipe.
Task<int> write_all(Clock& clock, int file, std::string_view bytes) {
  while (!bytes.empty()) {
    if (!is_writable(file)) {
      co_await clock.wait(kRetryDelay);
      continue;
    }
    const ssize_t size = ::write(file, bytes.data(), std::min(bytes.size(), kPieceMax));
    if (size < 0 && errno != EINTR && errno != EAGAIN) co_return errno;
    if (size < 0 && errno == EAGAIN) co_await clock.wait(kRetryDelay);
    if (size > 0) bytes.remove_prefix(static_cast<std::size_t>(size));
  }
  co_return 0;
}

std::vector<std::string> attempt_variables(const Won& won) {
  const RunHead& head = *won.run.head;
  return {"LATCHKEY_RUN=" + to_string(head.id), "LATCHKEY_KEY=" + head.key,
          "LATCHKEY_ATTEMPT=" + std::to_string(won.run.attempt),
          "LATCHKEY_FENCE=" + std::to_string(static_cast<std::uint64_t>(won.fence)),
          "LATCHKEY_EFFECT_KEY=" + to_string(won.run.effect_key)};
}

// This process's environment with the variables of the attempt, and without the token, which the command must not get.
std::vector<std::string> make_environment(const Won& won) {
  std::vector<std::string> variables = attempt_variables(won);
  const auto is_ours = [&](std::string_view variable) {
    const auto name = variable.substr(0, variable.find('=') + 1);
    return std::ranges::any_of(attempt_variables(won), [&](const std::string& ours) { return ours.starts_with(name); });
  };
  for (char** variable = ::environ; variable != nullptr && *variable != nullptr; ++variable)
    if (!is_ours(*variable) && !std::string_view(*variable).starts_with("LATCHKEY_TOKEN="))
      variables.emplace_back(*variable);
  return variables;
}

bool is_not_found(int error) { return error == ENOENT || error == ENOTDIR; }

int exit_code_of(SupervisorMessage ending) {
  switch (ending.kind) {
    case SupervisorMessage::exited:
      return ending.value;
    case SupervisorMessage::signalled:
      return 128 + ending.value;
    case SupervisorMessage::not_started:
      return is_not_found(ending.value) ? 127 : 126;
    default:
      return 128 + SIGKILL;
  }
}

std::string describe(SupervisorMessage ending, const std::string& program) {
  switch (ending.kind) {
    case SupervisorMessage::exited:
      return fmt::format("exit status {}", ending.value);
    case SupervisorMessage::signalled: {
      const char* const name = ::sigabbrev_np(ending.value);
      return fmt::format("killed by SIG{} ({})", name != nullptr ? name : "?", ending.value);
    }
    case SupervisorMessage::not_started:
      return is_not_found(ending.value) ? fmt::format("{}: command not found", program)
                                        : fmt::format("{}: cannot be run: {}", program, ::strerror(ending.value));
    default:
      return "its supervisor was killed, and the command with it";
  }
}

// The last line of its stderr, for dead letters.
std::string last_line(const LastBytes& errors) {
  std::string_view text = errors.bytes();
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  text = text.substr(text.rfind('\n') + 1);  // npos + 1 is 0
  std::string line(text.substr(0, 200));
  for (char& c : line)
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f) c = '?';
  return line;
}

}  // namespace

Command::~Command() = default;  // closes the socket, so the supervisor kills the command

void Command::send(SupervisorMessage message) {
  if (socket_) ::send(socket_->native_handle(), &message, sizeof message, MSG_NOSIGNAL);
}

void Command::terminate() {
  if (std::exchange(terminating_, true) || !socket_) return;
  send({SupervisorMessage::signal_all, SIGTERM});
  terminated_->try_send(boost::system::error_code{});
}

void Command::stop(StopReason reason) {
  stopped_ = reason;
  terminate();
}

void Command::interrupt(int signal, Sender sender) {
  const bool again = interrupted_.has_value();
  if (!again) interrupted_ = signal;
  if (again) return terminate();
  if (sender == Sender::process) send({SupervisorMessage::pass_signal, signal});
}

// Reads how the command ended. After that, the pipes have the rest of its output.
Task<void> Command::watch(Stream& output, Stream& errors, SupervisorMessage& ending) {
  SupervisorMessage message = kSupervisorLost;
  const auto [error, size] = co_await socket_->async_read_some(asio::buffer(&message, sizeof message), kQuietly);
  ending = !error && size == sizeof message ? message : kSupervisorLost;
  ended_ = true;
  boost::system::error_code closed_already;
  output.cancel(closed_already);
  errors.cancel(closed_already);
}

Task<void> Command::pass_on(Stream& from, int to, LastBytes& last) {
  std::string buffer(64 * 1024, '\0');
  for (;;) {
    // After the end, reads only the bytes in the pipe: a background process may have the pipe open for days.
    if (ended_ && !from.non_blocking()) from.non_blocking(true);
    boost::system::error_code error;
    std::size_t size = 0;
    if (ended_) {
      size = from.read_some(asio::buffer(buffer), error);
    } else {
      std::tie(error, size) = co_await from.async_read_some(asio::buffer(buffer), kQuietly);
    }
    const bool cancelled = error == asio::error::operation_aborted && ended_;
    if (error && !cancelled) co_return;
    const std::string_view bytes(buffer.data(), size);
    last.add(bytes);
    if (to >= 0 && !bytes.empty()) {
      const int wrong = co_await write_all(clock_, to, bytes);
      // As in any pipeline: the command's next write fails with EPIPE or SIGPIPE.
      if (wrong == EPIPE) {
        from.close();
        co_return;
      }
      if (wrong != 0) to = -1, write_error_ = wrong;
    }
  }
}

// Never returns before it is cancelled.
Task<void> Command::kill_after_grace() {
  constexpr Duration kSlice{100};
  co_await terminated_->async_receive(asio::use_awaitable);
  co_await clock_.wait(settings_.grace);
  for (;;) {
    send({SupervisorMessage::signal_all, SIGKILL});
    co_await clock_.wait(kSlice);
  }
}

Task<void> Command::finish(bool leave_rest, pid_t supervisor) {
  send({leave_rest ? SupervisorMessage::leave_rest : SupervisorMessage::kill_rest, 0});
  SupervisorMessage nothing{};
  co_await socket_->async_read_some(asio::buffer(&nothing, sizeof nothing), kQuietly);  // the supervisor's exit
  socket_.reset();
  ::waitpid(supervisor, nullptr, 0);
}

EffectResult Command::decide_result(const Won& won, SupervisorMessage ending) {
  // A completion counts: the command may have ended before the signal, or may have ignored it.
  if (ending.kind == SupervisorMessage::exited && ending.value == 0)
    return EffectDone{.result = write_stored_output({0, to_stored(end_->output), to_stored(end_->errors)})};
  if (stopped_ == StopReason::cancel_requested && ending.kind != SupervisorMessage::not_started)
    return EffectFailed{.message = "stopped because it was cancelled", .code = "CANCELLED", .outcome_unknown = true};
  const bool holds_doubt = won.run.head->on_doubt == OnDoubt::hold;
  if (stopped_ == StopReason::lease_lost && holds_doubt)
    return EffectFailed{.message = "stopped because its lease was lost", .code = "LEASE_LOST", .outcome_unknown = true};
  // Under `hold`, an interrupted effect must not be run again without an operator: its outcome is unknown.
  const bool cut_short = interrupted_ || ending.kind == SupervisorMessage::signalled;
  if (cut_short && holds_doubt && ending.kind != SupervisorMessage::not_started)
    return EffectFailed{.message = end_->what, .code = "INTERRUPTED", .outcome_unknown = true};
  if (stopped_ || interrupted_) return EffectInterrupted{};
  const std::string line = last_line(end_->errors);
  const int code = end_->exit_code;
  return EffectFailed{.message = line.empty() ? end_->what : end_->what + ": " + line,
                      .code = ending.kind == SupervisorMessage::signalled ? fmt::format("SIGNAL_{}", ending.value)
                                                                          : fmt::format("EXIT_{}", code),
                      .retryable = code != 126 && code != 127,
                      .outcome_unknown = ending.kind == kSupervisorLost.kind};
}

Task<EffectResult> Command::run(const Won& won) {
  using namespace asio::experimental::awaitable_operators;
  if (interrupted_) co_return EffectInterrupted{};
  const auto executor = co_await asio::this_coro::executor;
  const auto started = start_supervised(settings_.arguments, make_environment(won), settings_.signals);
  if (!started) co_return EffectFailed{.message = to_string(started.error()), .code = "NOT_STARTED"};
  ended_ = terminating_ = false;
  stopped_ = std::nullopt;
  socket_.emplace(executor, started->socket);
  terminated_.emplace(executor, 1);
  Stream output(executor, started->output), errors(executor, started->errors);
  LastBytes last_output(settings_.stored_bytes), last_errors(settings_.stored_bytes);
  SupervisorMessage ending = kSupervisorLost;
  co_await ((watch(output, errors, ending) && pass_on(output, settings_.output, last_output) &&
             pass_on(errors, settings_.errors, last_errors)) ||
            kill_after_grace());
  end_ = CommandEnd{exit_code_of(ending), describe(ending, settings_.arguments.front()), std::move(last_output),
                    std::move(last_errors)};
  EffectResult result = decide_result(won, ending);
  co_await finish(std::holds_alternative<EffectDone>(result), started->supervisor);
  co_return result;
}

}  // namespace latchkey
