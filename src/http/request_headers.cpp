#include "http/request_headers.hpp"

#include <algorithm>
#include <array>

#include "http/chars.hpp"

namespace latchkey::http {
namespace {

// These frame the request, so only libcurl sets them.
constexpr std::array kFramingHeaders{"Content-Length", "Transfer-Encoding", "Connection", "Expect", "Upgrade"};

bool is_header_value(std::string_view text) {
  return std::ranges::none_of(text, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && c != '\t') || byte == 0x7f;
  });
}

}  // namespace

bool is_token(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return is_in(kTokenChars, c); });
}

std::optional<std::string> RequestHeaders::assign(std::span<const OutgoingHeader> headers) {
  text_.clear();
  nodes_.clear();
  // libcurl adds the second for a body when the request has no Content-Type. A name without a value removes it.
  text_.append("Expect:").push_back('\0');
  if (std::ranges::none_of(headers,
                           [](const auto& header) { return equals_ignoring_case(header.name, "Content-Type"); }))
    text_.append("Content-Type:").push_back('\0');
  for (const OutgoingHeader& header : headers) {
    if (!is_token(header.name)) return "a header name is not valid";
    if (!is_header_value(header.value)) return "the value of " + header.name + " has control characters";
    if (std::ranges::any_of(kFramingHeaders, [&](const char* name) { return equals_ignoring_case(header.name, name); }))
      return "the client sets " + header.name + " itself";
    const std::string_view value = trim_blanks(header.value);
    text_.append(header.name);
    if (value.empty())
      text_.push_back(';');  // libcurl's form of a header without a value
    else
      text_.append(": ").append(value);
    text_.push_back('\0');
  }
  for (std::size_t at = 0; at < text_.size(); at = text_.find('\0', at) + 1)
    nodes_.push_back({.data = text_.data() + at, .next = nullptr});
  for (std::size_t i = 1; i < nodes_.size(); ++i) nodes_[i - 1].next = &nodes_[i];
  return std::nullopt;
}

}  // namespace latchkey::http
