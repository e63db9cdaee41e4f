// StatusLine: one line on stderr that is written over, for whoever waits at a terminal. Where stderr is no terminal, or
// one that cannot do that (TERM=dumb), nothing is ever written. Gone when it is destroyed. One thread at a time.
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

  // What this process has as stderr.
  static On find();

  // Without control characters, and no wider than the terminal.
  void show(std::string_view text);
  // To be called before anything else is written there.
  void clear();

 private:
  std::ostream& err_;
  On on_;
  bool shown_ = false;
};

}  // namespace latchkey
