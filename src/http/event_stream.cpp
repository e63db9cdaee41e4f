#include "http/event_stream.hpp"

#include "http/scan.hpp"

namespace latchkey::http {
namespace {

void append_line(std::string& out, std::string_view prefix, std::string_view value) {
  out.append(prefix);
  for (const char c : value) out.push_back(is_control(c) ? ' ' : c);
  out.push_back('\n');
}

// Writes each line of `text` with the prefix. A line ends with LF, CR or CR LF.
void append_lines(std::string& out, std::string_view prefix, std::string_view text) {
  std::size_t at = 0;
  for (;;) {
    const std::size_t end = text.find_first_of("\r\n", at);
    append_line(out, prefix, text.substr(at, end - at));
    if (end == std::string_view::npos) return;
    at = end + (text.substr(end).starts_with("\r\n") ? 2 : 1);
  }
}

}  // namespace

std::string format_event(const ServerEvent& event) {
  std::string out;
  out.reserve(32 + event.id.size() + event.event.size() + event.data.size());
  if (!event.id.empty()) append_line(out, "id: ", event.id);
  if (!event.event.empty()) append_line(out, "event: ", event.event);
  append_lines(out, "data: ", event.data);
  out.push_back('\n');
  return out;
}

std::string format_comment(std::string_view text) {
  std::string out;
  append_lines(out, ": ", text);
  out.push_back('\n');
  return out;
}

Response event_stream_head() {
  Response head{.content_type = "text/event-stream"};
  head.add_header("Cache-Control", "no-store");
  head.add_header("X-Accel-Buffering", "no");
  return head;
}

}  // namespace latchkey::http
