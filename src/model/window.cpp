#include "model/window.hpp"

namespace latchkey {

Result<Duration> parse_window(std::string_view text) {
  if (text == kForeverWord) return kForever;
  return parse_duration(text);
}

std::string format_window(Duration window) {
  return window == kForever ? std::string(kForeverWord) : format_duration(window);
}

}  // namespace latchkey
