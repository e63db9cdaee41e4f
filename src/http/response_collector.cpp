#include "http/response_collector.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "http/chars.hpp"

namespace latchkey::http {

void ResponseCollector::add_line(std::string_view line) {
  while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.remove_suffix(1);
  if (has_head()) return;  // a trailer
  if (has_head_ || response_.status == 0) return begin(line);
  if (line.empty())
    has_head_ = true;
  else
    add_header(line);
}

void ResponseCollector::begin(std::string_view status_line) {
  response_ = {};
  header_bytes_ = 0;
  has_head_ = false;
  const std::string_view status = status_line.substr(std::min(status_line.find(' '), status_line.size() - 1) + 1);
  std::from_chars(status.data(), status.data() + status.size(), response_.status);
}

void ResponseCollector::add_header(std::string_view line) {
  header_bytes_ += line.size();
  const std::size_t colon = line.find(':');
  if (header_bytes_ > limits_.header_bytes_max || response_.headers.size() == limits_.headers_max) {
    response_.headers_truncated = true;
  } else if (colon != line.npos) {
    response_.headers.push_back({std::string(line.substr(0, colon)), std::string(trim_blanks(line.substr(colon + 1)))});
  }
}

bool ResponseCollector::add_body(std::string_view bytes) {
  const std::size_t room = limits_.body_bytes_max - response_.body.size();
  response_.body.append(bytes.substr(0, room));
  if (bytes.size() > room) response_.body_truncated = true;
  return !response_.body_truncated;
}

}  // namespace latchkey::http
