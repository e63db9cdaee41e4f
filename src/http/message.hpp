// What a handler is given and what it answers: Request and Response.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "http/head.hpp"

namespace latchkey::http {

// A view of one whole request, valid only during the handler's call: copy or take what must outlive it.
struct Request {
  std::string_view method;
  std::string_view target;  // path and query, as sent
  std::string_view path;    // still percent-encoded
  std::string_view query;   // without the question mark, still percent-encoded
  std::span<const Field> fields;
  std::string_view body;
  std::string* owned_body = nullptr;  // set when the body has a string of its own, which take_body() moves
  std::string_view remote;            // the peer's address, without its port
  bool is_loopback = false;

  // The first header of that name, in any case.
  std::optional<std::string_view> find(std::string_view name) const { return find_field(fields, name); }

  // The body as a string, moved where it can be; `body` is empty afterwards.
  std::string take_body() {
    std::string taken = owned_body ? std::move(*owned_body) : std::string(body);
    body = {};
    owned_body = nullptr;
    return taken;
  }
};

struct Response {
  int status = 200;
  std::string content_type;  // none is sent when empty
  std::string header_lines;  // further headers, each "Name: value\r\n"; see add_header()
  std::string body;

  // Control characters in the value become spaces, so that a value can never start another header.
  Response& add_header(std::string_view name, std::string_view value);
};

}  // namespace latchkey::http
