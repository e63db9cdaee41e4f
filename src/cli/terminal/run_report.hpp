// RunReport: the messages of `latchkey run` on stderr and its exit code, for every way in which a call can end. Pure
// except for the streams. One thread at a time.
#pragma once

#include <iosfwd>
#include <string>

#include "base/clock.hpp"
#include "cli/terminal/status_line.hpp"
#include "effects/command.hpp"
#include "engine/run_once.hpp"

namespace latchkey {

enum class Verbosity : std::uint8_t { full, quiet };  // quiet: warnings only

struct RunReport {
  std::ostream& err;
  Clock& clock;
  Verbosity verbosity = Verbosity::full;
  std::string key;
  StatusLine& status;

  // Print one line, "latchkey: …"; a note only without --quiet.
  void note(const std::string& line) const;
  void warn(const std::string& line) const;
  void note_released(RunId id) const;
  // Shows the wait on a terminal until the next message.
  void show_waiting(RunId id, Duration since) const;

  // Returns the exit code. Prints the stored output of a replay to stdout and stderr.
  int report(const RunOnceReply& reply, const Command& command) const;

 private:
  int ran(const Ran& ran, const Command& command) const;
  int replay(const Run& run) const;
  int output_lost(int error) const;
  int busy(Code code, const Run& run, Duration retry_after) const;
  void note_truncation(const char* name, std::uint64_t stored, std::uint64_t total) const;
};

}  // namespace latchkey
