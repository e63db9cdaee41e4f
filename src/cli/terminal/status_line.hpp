// StatusLine: one line on stderr that shows progress and that the next message overwrites. Writes nothing when stderr
// is no terminal, or is a terminal that cannot erase a line (TERM=dumb). The destructor erases the line. One thread at
// a time.
#pragma once

#include <iosfwd>
#include <string_view>

namespace latchkey {

class StatusLine {
 public:
  enum class On : bool { nothing, terminal };

  StatusLine(std::ostream& err, On on) : err_(err), on_(on) {}
  ~StatusLine() { clear(); }
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  // Whether the stderr of this process is a terminal that can show the line.
  static On find();

  // Shows the text without control characters, cut to the width of the terminal.
  void show(std::string_view text);
  // Must be called before anything else is written to stderr.
  void clear();

 private:
  std::ostream& err_;
  On on_;
  bool shown_ = false;
};

}  // namespace latchkey
