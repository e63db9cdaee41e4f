#include "cli/terminal/run_report.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ostream>

#include "cli/exit_codes.hpp"
#include "effects/stored_output.hpp"

namespace latchkey {
namespace {

// Returns 0 or the error. A closed pipe is no error: its reader has all that it wanted.
int write_whole(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t size = ::write(file, bytes.data(), bytes.size());
    if (size < 0 && errno != EINTR) return errno == EPIPE ? 0 : errno;
    if (size > 0) bytes.remove_prefix(static_cast<std::size_t>(size));
  }
  return 0;
}

// "3m", "2h": one unit, because readers need no more.
std::string coarse(Duration span) {
  using namespace std::chrono;
  if (span < seconds{1}) return "moments";
  if (span < minutes{2}) return fmt::format("{}s", duration_cast<seconds>(span).count());
  if (span < hours{2}) return fmt::format("{}m", duration_cast<minutes>(span).count());
  if (span < days{2}) return fmt::format("{}h", duration_cast<hours>(span).count());
  return fmt::format("{}d", duration_cast<days>(span).count());
}

std::string seconds_of(Duration span) { return fmt::format("{:.1f} s", static_cast<double>(span.count()) / 1000); }

template <class... Fs>
struct Cases : Fs... {
  using Fs::operator()...;
};

}  // namespace

void RunReport::warn(const std::string& line) const {
  status.clear();
  err << "latchkey: " + line + "\n" << std::flush;
}

void RunReport::note(const std::string& line) const {
  if (verbosity == Verbosity::full) warn(line);
}

void RunReport::note_truncation(const char* name, std::uint64_t stored, std::uint64_t total) const {
  note(fmt::format("only the last {} of {} bytes of {} were stored", stored, total, name));
}

int RunReport::replay(const Run& run) const {
  const auto* done = run.as<Completed>();
  const Bytes result = done != nullptr ? done->result : Bytes();
  const Instant at = done != nullptr ? done->at : Instant{};
  note(fmt::format("done before: run {} completed {} ({} ago), attempt {}; this is what it wrote", to_string(run.id()),
                   format_rfc3339(at), coarse(clock.now() - at), run.attempt));
  const auto stored = read_stored_output(result);
  if (!stored) {  // settled through the API, with a result of another form
    const int wrong = write_whole(STDOUT_FILENO, result.empty() ? "" : result + "\n");
    return wrong != 0 ? output_lost(wrong) : 0;
  }
  if (stored->output.truncated) note_truncation("stdout", stored->output.bytes.size(), stored->output.total);
  if (stored->errors.truncated) note_truncation("stderr", stored->errors.bytes.size(), stored->errors.total);
  const int output = write_whole(STDOUT_FILENO, stored->output.bytes);
  const int errors = write_whole(STDERR_FILENO, stored->errors.bytes);
  return output != 0 || errors != 0 ? output_lost(output != 0 ? output : errors) : 0;
}

int RunReport::output_lost(int error) const {
  warn(
      fmt::format("OUTPUT_FAILED: it is done, but not all of its output could be written: {}; the same call prints "
                  "the stored output",
                  std::strerror(error)));
  return EXIT_OUTPUT;
}

void RunReport::note_released(RunId id) const {
  note(fmt::format("interrupted; run {} is released, the next call runs it again", to_string(id)));
}

void RunReport::show_waiting(RunId id, Duration since) const {
  if (verbosity == Verbosity::full)
    status.show(fmt::format("latchkey: waiting for run {}, {}", to_string(id), coarse(since)));
}

int RunReport::busy(Code code, const Run& run, Duration retry_after) const {
  const char* const why = code == Code::ALREADY_RUNNING  ? "is leased by run"
                          : code == Code::ALREADY_QUEUED ? "is queued for a worker as run"
                          : code == Code::NOT_DUE        ? "waits for its next attempt as run"
                                                         : "belongs to run";
  warn(fmt::format("{}: the key '{}' {} {} (try again within {}; --wait waits for it)", facts(code).name, key, why,
                   to_string(run.id()), seconds_of(retry_after)));
  return EXIT_BUSY;
}

int RunReport::ran(const Ran& ran, const Command& command) const {
  const auto& end = command.end();
  if (ran.run.as<Completed>()) {
    if (end && end->output.truncated()) note_truncation("stdout", end->output.bytes().size(), end->output.total());
    if (end && end->errors.truncated()) note_truncation("stderr", end->errors.bytes().size(), end->errors.total());
    if (command.write_error()) return output_lost(*command.write_error());
    return 0;
  }
  if (command.stopped_for() == StopReason::lease_lost) {
    warn(fmt::format("LEASE_LOST: the lease of run {} could not be extended; the command was stopped",
                     to_string(ran.run.id())));
    return EXIT_BUSY;
  }
  if (command.interrupted_by() && !ran.run.as<Cancelled>()) {
    if (ran.run.as<InDoubt>())  // under `hold` the attempt is not released
      warn(
          fmt::format("OUTCOME_UNKNOWN: interrupted; run {0} may have had its effect, and is not run again before an "
                      "operator decides (latchkey runs resolve {0})",
                      to_string(ran.run.id())));
    else
      note_released(ran.run.id());
    return 128 + *command.interrupted_by();
  }
  if (ran.run.as<Cancelled>()) {
    warn(fmt::format("run {} was cancelled by an operator; the command was stopped", to_string(ran.run.id())));
    return 128 + SIGTERM;
  }
  if (ran.run.as<InDoubt>()) {
    warn(fmt::format("OUTCOME_UNKNOWN: run {} may have had its effect; an operator decides", to_string(ran.run.id())));
    return EXIT_IN_DOUBT;
  }
  const bool not_run = end && (end->exit_code == EXIT_NOT_FOUND || end->exit_code == EXIT_NOT_EXECUTABLE);
  if (not_run) warn(end->what);
  if (ran.dead_letter)
    note(fmt::format("{} after {} attempt{}; dead letter {} (latchkey dlq show {})",
                     not_run ? "failed"
                     : end   ? end->what
                             : ran.run.last_error,
                     ran.run.attempt, ran.run.attempt == 1 ? "" : "s", to_string(*ran.dead_letter),
                     to_string(*ran.dead_letter)));
  return end && end->exit_code != 0 ? end->exit_code : EXIT_INTERNAL;
}

int RunReport::report(const RunOnceReply& reply, const Command& command) const {
  status.clear();
  return std::visit(
      Cases{[&](const Ran& one) { return ran(one, command); },
            [&](const LostLease& lost) {
              warn(fmt::format("LEASE_LOST: run {} has another owner now; the effect of this call may be repeated",
                               to_string(lost.run)));
              return command.interrupted_by() ? 128 + *command.interrupted_by() : EXIT_BUSY;
            },
            [&](const Replay& one) { return replay(one.run); },
            [&](const Busy& one) { return busy(one.code, one.run, one.retry_after); },
            [&](const NotDue& one) { return busy(Code::NOT_DUE, one.run, one.retry_after); },
            [&](const InDoubtReply& one) {
              warn(
                  fmt::format("OUTCOME_UNKNOWN: run {} of the key '{}' may have had its effect; an operator decides "
                              "(latchkey runs show {}; runs cancel frees the key)",
                              to_string(one.run.id()), key, to_string(one.run.id())));
              return EXIT_IN_DOUBT;
            },
            [&](const Mismatch& one) {
              warn(fmt::format("KEY_REUSED: the key '{}' was used for another command line, by run {}", key,
                               to_string(one.existing)));
              return EXIT_BAD_DATA;
            }},
      reply);
}

}  // namespace latchkey
