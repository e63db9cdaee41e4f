// ResponseCollector: builds an OutgoingResponse from the lines and bytes that libcurl passes on, up to limits. Pure.
#pragma once

#include <string_view>

#include "http/outgoing.hpp"

namespace latchkey::http {

class ResponseCollector {
 public:
  struct Limits {
    std::size_t header_bytes_max = 0;
    std::size_t headers_max = 0;
    std::size_t body_bytes_max = 0;
  };

  explicit ResponseCollector(Limits limits) : limits_(limits) {}

  // A status line, a header, or the empty line at the end. Interim responses (1xx) and trailers are dropped.
  void add_line(std::string_view line);
  // Returns false when the body exceeds its limit: the rest is not wanted.
  bool add_body(std::string_view bytes);

  // libcurl reports success when the connection closes within the head, so its caller checks this.
  bool has_head() const { return has_head_ && response_.status >= 200; }
  bool is_body_truncated() const { return response_.body_truncated; }
  OutgoingResponse take() { return std::move(response_); }

 private:
  void begin(std::string_view status_line);
  void add_header(std::string_view line);

  Limits limits_;
  OutgoingResponse response_;
  std::size_t header_bytes_ = 0;
  bool has_head_ = false;
};

}  // namespace latchkey::http
