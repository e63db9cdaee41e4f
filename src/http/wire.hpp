// Writes a response as bytes.
#pragma once

#include <string>
#include <string_view>

#include "base/time.hpp"
#include "http/message.hpp"

namespace latchkey::http {

enum class Persistence {
  keep,      // HTTP/1.1's default: nothing is said
  say_keep,  // HTTP/1.0 with Connection: keep-alive
  close,
};

struct WireOptions {
  bool omits_body = false;  // an answer to HEAD: the length is said, the body is not sent
  Persistence persistence = Persistence::keep;
  std::string_view date;         // no Date when empty
  std::string_view extra_lines;  // further headers, each "Name: value\r\n"
};

// Appends head and body to `out`. Content-Length always, except where it must not be (204, 304).
void append_response(std::string& out, const Response& response, const WireOptions& options);

std::string_view reason_phrase(int status);

// "Fri, 06 Feb 2026 10:00:00 GMT"
std::string format_http_date(Instant at);

}  // namespace latchkey::http
