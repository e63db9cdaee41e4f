#include "http/wire.hpp"

#include <fmt/format.h>

#include <charconv>

#include "base/assert.hpp"
#include "http/chars.hpp"
#include "http/scan.hpp"

namespace latchkey::http {
namespace {

void append_number(std::string& out, std::size_t number) {
  char digits[20];
  const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
  out.append(digits, end);
}

void append_status_line(std::string& out, int status) {
  if (status == 200) {
    out.append("HTTP/1.1 200 OK\r\n");
    return;
  }
  out.append("HTTP/1.1 ");
  append_number(out, static_cast<std::size_t>(status));
  out.append(" ").append(reason_phrase(status)).append("\r\n");
}

void append_head_start(std::string& out, const Response& response, const WireOptions& options) {
  append_status_line(out, response.status);
  if (!options.date.empty()) out.append("Date: ").append(options.date).append("\r\n");
  if (!response.content_type.empty()) out.append("Content-Type: ").append(response.content_type).append("\r\n");
}

void append_head_rest(std::string& out, const Response& response, const WireOptions& options) {
  if (options.persistence == Persistence::close) out.append("Connection: close\r\n");
  if (options.persistence == Persistence::keep_alive) out.append("Connection: keep-alive\r\n");
  out.append(response.header_lines).append(options.extra_lines).append("\r\n");
}

bool may_have_body(int status) { return status != 204 && status != 304; }

}  // namespace

Response& Response::add_header(std::string_view name, std::string_view value) {
  for (const char c : name) LK_ASSERT(is_in(kTokenChars, c));
  header_lines.append(name).append(": ");
  for (const char c : value) header_lines.push_back(is_control(c) ? ' ' : c);
  header_lines.append("\r\n");
  return *this;
}

void append_response(std::string& out, const Response& response, const WireOptions& options) {
  const bool has_body = may_have_body(response.status);
  out.reserve(out.size() + 256 + response.header_lines.size() + options.extra_lines.size() + response.body.size());
  append_head_start(out, response, options);
  if (has_body) {
    out.append("Content-Length: ");
    append_number(out, response.body.size());
    out.append("\r\n");
  }
  append_head_rest(out, response, options);
  if (has_body && !options.omits_body) out.append(response.body);
}

void append_stream_head(std::string& out, const Response& head, BodyEnd end, const WireOptions& options) {
  append_head_start(out, head, options);
  if (end == BodyEnd::last_chunk && may_have_body(head.status)) out.append("Transfer-Encoding: chunked\r\n");
  append_head_rest(out, head, options);
}

void append_chunk(std::string& out, std::string_view bytes) {
  if (bytes.empty()) return;
  char digits[16];
  const auto end = std::to_chars(digits, digits + sizeof digits, bytes.size(), 16).ptr;
  out.reserve(out.size() + bytes.size() + 32);
  out.append(digits, end).append("\r\n").append(bytes).append("\r\n");
}

void append_last_chunk(std::string& out) { out.append("0\r\n\r\n"); }

std::string_view reason_phrase(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 204:
      return "No Content";
    case 301:
      return "Moved Permanently";
    case 302:
      return "Found";
    case 303:
      return "See Other";
    case 304:
      return "Not Modified";
    case 307:
      return "Temporary Redirect";
    case 308:
      return "Permanent Redirect";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 410:
      return "Gone";
    case 412:
      return "Precondition Failed";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 422:
      return "Unprocessable Content";
    case 425:
      return "Too Early";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    default:
      return "Status";
  }
}

std::string format_http_date(Instant at) {
  constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const auto day = std::chrono::floor<std::chrono::days>(at);
  const std::chrono::year_month_day date{day};
  const std::chrono::hh_mm_ss time{std::chrono::floor<std::chrono::seconds>(at - day)};
  return fmt::format("{}, {:02} {} {:04} {:02}:{:02}:{:02} GMT", kDays[std::chrono::weekday{day}.c_encoding()],
                     static_cast<unsigned>(date.day()), kMonths[static_cast<unsigned>(date.month()) - 1],
                     static_cast<int>(date.year()), time.hours().count(), time.minutes().count(),
                     time.seconds().count());
}

}  // namespace latchkey::http
