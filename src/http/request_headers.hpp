// RequestHeaders: the headers of a request as libcurl's list. Reusable: later requests do not allocate.
#pragma once

#include <curl/curl.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "http/outgoing.hpp"

namespace latchkey::http {

class RequestHeaders {
 public:
  // Replaces the headers. Returns the reason when one of them cannot be sent.
  std::optional<std::string> assign(std::span<const OutgoingHeader> headers);
  // Valid until the next assign().
  curl_slist* list() { return nodes_.data(); }

 private:
  std::string text_;  // the lines, each with a NUL
  std::vector<curl_slist> nodes_;
};

// Whether `text` is a method or a header name.
bool is_token(std::string_view text);

}  // namespace latchkey::http
