// Formats responses as the bytes of HTTP/1.1.
#pragma once

#include <string>
#include <string_view>

#include "base/time.hpp"
#include "http/message.hpp"

namespace latchkey::http {

enum class Persistence {
  persistent,  // the default of HTTP/1.1, without a Connection header
  keep_alive,  // Connection: keep-alive, for HTTP/1.0
  close,       // Connection: close
};

struct WireOptions {
  bool omits_body = false;  // a response to HEAD has the length but not the body
  Persistence persistence = Persistence::persistent;
  std::string_view date;         // no Date is sent when empty
  std::string_view extra_lines;  // additional headers, each "Name: value\r\n"
};

// Appends head and body to `out`. Adds Content-Length, except for 204 and 304, where it is forbidden.
void append_response(std::string& out, const Response& response, const WireOptions& options);

// How the end of a streamed body is marked.
enum class BodyEnd {
  last_chunk,  // chunked transfer encoding
  close,       // the end of the connection, for HTTP/1.0
};

// Appends the head of a response whose body is streamed.
void append_stream_head(std::string& out, const Response& head, BodyEnd end, const WireOptions& options);

// Appends a chunk of a chunked body. Appends nothing when `bytes` is empty, because an empty chunk is the last one.
void append_chunk(std::string& out, std::string_view bytes);
void append_last_chunk(std::string& out);

std::string_view reason_phrase(int status);

// "Fri, 06 Feb 2026 10:00:00 GMT"
std::string format_http_date(Instant at);

}  // namespace latchkey::http
