#include "cli/terminal/status_line.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <ostream>
#include <utility>

#include "cli/terminal/table.hpp"

namespace latchkey {
namespace {

constexpr std::string_view kStartAgain = "\r\x1b[K";
constexpr std::size_t kUsualWidth = 80;

// A line that wraps could not be erased.
std::size_t find_width() {
  winsize size{};
  const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
  return (known ? size.ws_col : kUsualWidth) - 1;
}

}  // namespace

StatusLine::On StatusLine::find() {
  const char* const kind = std::getenv("TERM");
  const bool simple = kind == nullptr || std::string_view(kind) == "dumb";
  return ::isatty(STDERR_FILENO) == 1 && !simple ? On::terminal : On::nothing;
}

void StatusLine::show(std::string_view text) {
  if (on_ == On::nothing) return;
  err_ << kStartAgain << plain(text, find_width()) << std::flush;
  shown_ = true;
}

void StatusLine::clear() {
  if (std::exchange(shown_, false)) err_ << kStartAgain << std::flush;
}

}  // namespace latchkey
