// Command: a child process as a side effect. It runs without a shell. Its output is passed on immediately, and the end
// of the output is stored.
//
// The end of the command decides how the attempt ends:
//   exit 0                    completed, even if a signal came meanwhile; its background processes live on, with closed
//                             pipes
//   exit 126 or 127           failed permanently, as if it could not be started
//   another exit or a signal  failed, may be retried
//   interrupted by a signal   released
//   stopped, lease lost       released; under `hold` an unknown outcome
//   stopped, cancelled        an unknown outcome: the effect may have happened in part
// In every case but the first, the command's descendants are killed. If Latchkey dies, the command dies, too: see
// process_supervisor.hpp for this and its limits.
//
// stop() and interrupt() send SIGTERM; processes that still run after the grace are killed. If the reader of our output
// does not read, the command waits, and heartbeats continue. If the reader has closed the pipe (EPIPE), the command's
// pipe is closed, as in any pipeline; its output until then is stored. Runs on the calling coroutine's thread.
#pragma once

#include <boost/asio/experimental/channel.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <optional>

#include "base/clock.hpp"
#include "effects/last_bytes.hpp"
#include "effects/process_supervisor.hpp"
#include "engine/run_once.hpp"

namespace latchkey {

struct CommandSettings {
  // The program, searched in PATH, and its arguments.
  std::vector<std::string> arguments;
  // How many bytes of the end of each stream are stored.
  std::size_t stored_bytes = 64 * 1024;
  // Between SIGTERM and SIGKILL.
  Duration grace = std::chrono::seconds{5};
  // The descriptors for its output; -1: none.
  int output = 1;
  int errors = 2;
  // The signal settings of the command.
  SignalState signals;
};

// The end of the latest attempt.
struct CommandEnd {
  int exit_code = 0;  // as in shells: 128 + n for signal n, 126 and 127
  std::string what;   // "exit status 3", "killed by SIGKILL (9)", "not found"
  LastBytes output;
  LastBytes errors;
};

class Command final : public SideEffect {
 public:
  Command(CommandSettings settings, Clock& clock) : settings_(std::move(settings)), clock_(clock) {}
  ~Command() override;

  Task<EffectResult> run(const Won& won) override;
  void stop(StopReason reason) override;

  // Ends the command for the user; the attempt is released. The first signal is passed on to the command, unless the
  // terminal has sent it already. A second one sends SIGTERM to all processes. Before or between attempts: the next
  // attempt is not started.
  enum class Sender : std::uint8_t { process, terminal };
  void interrupt(int signal, Sender sender);

  bool is_running() const { return socket_.has_value(); }
  std::optional<int> interrupted_by() const { return interrupted_; }
  std::optional<StopReason> stopped_for() const { return stopped_; }
  // None before an attempt has ended.
  const std::optional<CommandEnd>& end() const { return end_; }
  // The errno if not all of its output was passed on; none after a success or EPIPE.
  std::optional<int> write_error() const { return write_error_; }

 private:
  using Stream = asio::posix::stream_descriptor;

  Task<void> watch(Stream& output, Stream& errors, SupervisorMessage& ending);
  Task<void> pass_on(Stream& from, int to, LastBytes& last);
  Task<void> kill_after_grace();
  Task<void> finish(bool leave_rest, pid_t supervisor);
  EffectResult decide_result(const Won& won, SupervisorMessage ending);
  void send(SupervisorMessage message);
  void terminate();

  CommandSettings settings_;
  Clock& clock_;
  std::optional<Stream> socket_;  // to the supervisor, while it runs
  bool ended_ = false;            // the command; its descendants may still run
  bool terminating_ = false;
  using Event = asio::experimental::channel<void(boost::system::error_code)>;
  std::optional<Event> terminated_;  // sent when SIGTERM was sent to all processes
  std::optional<int> interrupted_;
  std::optional<StopReason> stopped_;
  std::optional<CommandEnd> end_;
  std::optional<int> write_error_;
};

}  // namespace latchkey
