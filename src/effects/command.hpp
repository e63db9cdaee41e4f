// Command: a child process as a side effect. Run without a shell, its output passed on as it comes and its end kept.
//
// What an end means for the try:
//   exit 0                    done, whatever came meanwhile; what it left running in the background lives on, its pipes
//                             closed
//   exit 126 or 127           failed for good, as when it cannot be started
//   any other, or a signal    failed, may be tried again
//   interrupted by a signal   given back
//   stopped, lease lost       given back; under `hold` an unknown outcome
//   stopped, cancelled        an unknown outcome: it may have done half
// In every case but the first all that it started is killed. It dies with its holder: see keeper.hpp, limits included.
//
// stop() and interrupt() ask politely; whoever is still there after the grace is killed. A reader of our output that
// does not read makes the command wait, not the heartbeat; one that has gone away (EPIPE) closes the command's own
// pipe, as in any pipeline. What it wrote until then is kept. Runs on the calling coroutine's thread.
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
  // The program, looked for in PATH, and its arguments.
  std::vector<std::string> arguments;
  // How much of the end of each stream is kept.
  std::size_t stored_bytes = 64 * 1024;
  // Between SIGTERM and SIGKILL.
  Duration grace = std::chrono::seconds{5};
  // Where its output goes; -1: nowhere.
  int output = 1;
  int errors = 2;
  // What the command inherits.
  SignalState signals;
};

// How the latest try ended.
struct CommandEnd {
  int exit_code = 0;  // as shells say it: 128 + n for signal n, 126 and 127
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

  // The user wants it to end: the try is given back. The first signal is passed on to the command, unless it has it
  // from the terminal already; a second one stops everything below. Before or between tries: the next one is not
  // started.
  enum class Sender : std::uint8_t { process, terminal };
  void interrupt(int signal, Sender sender);

  bool is_running() const { return socket_.has_value(); }
  std::optional<int> interrupted_by() const { return interrupted_; }
  std::optional<StopReason> stopped_for() const { return stopped_; }
  // None before a try has ended.
  const std::optional<CommandEnd>& end() const { return end_; }
  // Why not all of its output was passed on, as an errno; none when it was, or when nobody reads any more.
  std::optional<int> write_error() const { return write_error_; }

 private:
  using Stream = asio::posix::stream_descriptor;

  Task<void> watch(Stream& output, Stream& errors, SupervisorMessage& ending);
  Task<void> pass_on(Stream& from, int to, LastBytes& kept);
  Task<void> kill_after_grace();
  Task<void> finish(bool leave_rest, pid_t keeper);
  EffectResult judge(const Won& won, SupervisorMessage ending);
  void tell(SupervisorMessage message);
  void terminate();

  CommandSettings settings_;
  Clock& clock_;
  std::optional<Stream> socket_;  // to the keeper, while there is one
  bool ended_ = false;            // the command, not all below it
  bool terminating_ = false;
  using Event = asio::experimental::channel<void(boost::system::error_code)>;
  std::optional<Event> terminated_;  // when SIGTERM went to all
  std::optional<int> interrupted_;
  std::optional<StopReason> stopped_;
  std::optional<CommandEnd> end_;
  std::optional<int> write_error_;
};

}  // namespace latchkey
