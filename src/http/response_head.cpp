#include "http/response_head.hpp"

#include <charconv>

#include "http/chars.hpp"
#include "http/scan.hpp"

namespace latchkey::http {
namespace {

constexpr std::size_t kHeadBytesMax = 64 * 1024;

std::unexpected<Error> bad(const char* what) {
  return fail(Code::REPLY_LOST, std::string("the response is malformed: ") + what);
}

// Parses "HTTP/1.1 200 OK". The reason phrase may be missing.
bool read_status_line(std::string_view line, ResponseHead& head) {
  if (line.size() < 12 || !(line.starts_with("HTTP/1.1 ") || line.starts_with("HTTP/1.0 "))) return false;
  if (line.size() > 12 && line[12] != ' ') return false;
  for (const char c : line.substr(9, 3))
    if (!is_digit(c)) return false;
  head.status = (line[9] - '0') * 100 + (line[10] - '0') * 10 + (line[11] - '0');
  head.is_keep_alive = line[7] == '1';
  return head.status >= 100;
}

bool note(const Field& field, ResponseHead& head) {
  if (equals_ignoring_case(field.name, "content-length")) {
    std::uint64_t length = 0;
    const char* const last = field.value.data() + field.value.size();
    const auto [end, error] = std::from_chars(field.value.data(), last, length);
    if (error != std::errc{} || end != last || head.content_length) return false;
    head.content_length = length;
  } else if (equals_ignoring_case(field.name, "transfer-encoding")) {
    if (!equals_ignoring_case(field.value, "chunked") || head.is_chunked) return false;
    head.is_chunked = true;
  } else if (equals_ignoring_case(field.name, "connection")) {
    if (equals_ignoring_case(field.value, "close")) head.is_keep_alive = false;
  }
  return true;
}

}  // namespace

Result<std::size_t> parse_response_head(std::string_view bytes, ResponseHead& head) {
  head = {};
  const std::size_t end = bytes.find("\r\n\r\n");
  if (end == std::string_view::npos || end > kHeadBytesMax) {
    if (bytes.size() > kHeadBytesMax) return bad("its head is too large");
    return 0;
  }
  std::string_view rest = bytes.substr(0, end + 2);
  for (bool is_first = true; !rest.empty(); is_first = false) {
    const std::string_view line = rest.substr(0, rest.find("\r\n"));
    rest.remove_prefix(line.size() + 2);
    if (find_control(line.data(), line.data() + line.size()) != line.data() + line.size())
      return bad("control character");
    if (is_first) {
      if (!read_status_line(line, head)) return bad("status line");
      continue;
    }
    const std::size_t colon = line.find(':');
    if (colon == 0 || colon == std::string_view::npos) return bad("header without a name");
    const Field field{line.substr(0, colon), trim_blanks(line.substr(colon + 1))};
    for (const char c : field.name)
      if (!is_in(kTokenChars, c)) return bad("header name");
    if (!note(field, head)) return bad("length");
    head.fields.push_back(field);
  }
  if (head.is_chunked && head.content_length) return bad("two lengths");
  return end + 4;
}

}  // namespace latchkey::http
