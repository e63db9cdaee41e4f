// What `latchkey run` says on stderr and how it exits, for every way a call can end. Pure but for the streams.
#pragma once

#include <iosfwd>
#include <string>

#include "base/clock.hpp"
#include "cli/terminal/status_line.hpp"
#include "effects/command.hpp"
#include "engine/run_once.hpp"

namespace latchkey {

enum class Verbosity : std::uint8_t { full, quiet };  // quiet: refusals and failures only

struct RunReport {
  std::ostream& err;
  Clock& clock;
  Verbosity chatter = Verbosity::full;
  std::string key;
  StatusLine& status;

  // One line, "latchkey: …".
  void note(const std::string& line) const;
  void refuse(const std::string& line) const;
  void note_given_back(RunId id) const;
  // On a terminal, until something else is said.
  void show_waiting(RunId id, Duration since) const;

  // The exit code. Prints a replay's kept output to stdout and stderr.
  int report(const RunOnceReply& reply, const Command& command) const;

 private:
  int ran(const Ran& ran, const Command& command) const;
  int replay(const Run& run) const;
  int output_lost(int error) const;
  int busy(Code code, const Run& run, Duration retry_after) const;
  void tell_truncation(const char* name, std::uint64_t kept, std::uint64_t total) const;
};

}  // namespace latchkey
