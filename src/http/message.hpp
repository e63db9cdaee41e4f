// Request and Response: the input and the result of a handler.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "http/head.hpp"

namespace latchkey::http {

// A view of one complete request. Valid only during the call of the handler, which copies the parts it needs later.
struct Request {
  std::string_view method;
  std::string_view target;  // path and query, as the client sent them
  std::string_view path;    // still percent-encoded
  std::string_view query;   // without the question mark, still percent-encoded
  std::span<const Field> fields;
  std::string_view body;
  std::string* owned_body = nullptr;  // set when the body is a separate string, which take_body() moves
  std::string_view remote;            // the address of the client, without its port
  bool is_loopback = false;

  // Finds the first header of that name, ignoring case.
  std::optional<std::string_view> find(std::string_view name) const { return find_field(fields, name); }

  // Returns the body as a string, without a copy where possible. `body` is empty afterwards.
  std::string take_body() {
    std::string taken = owned_body ? std::move(*owned_body) : std::string(body);
    body = {};
    owned_body = nullptr;
    return taken;
  }
};

struct Response {
  int status = 200;
  std::string content_type;  // no Content-Type is sent when empty
  std::string header_lines;  // further headers, each "Name: value\r\n"; see add_header()
  std::string body;

  // Replaces control characters in the value with spaces, so that a value cannot begin another header.
  Response& add_header(std::string_view name, std::string_view value);
};

}  // namespace latchkey::http
