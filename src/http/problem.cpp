#include "http/problem.hpp"

#include "base/utf8.hpp"

namespace latchkey::http {
namespace {

void append_escaped(std::string& out, char c) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(c);
  switch (c) {
    case '"':
      out.append("\\\"");
      break;
    case '\\':
      out.append("\\\\");
      break;
    case '\n':
      out.append("\\n");
      break;
    case '\r':
      out.append("\\r");
      break;
    case '\t':
      out.append("\\t");
      break;
    default:
      if (byte >= 0x20) {
        out.push_back(c);
      } else {
        out.append("\\u00");
        out.push_back(kDigits[byte >> 4]);
        out.push_back(kDigits[byte & 15]);
      }
  }
}

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
  out.push_back('"');
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0)
      out.append("\xef\xbf\xbd");
    else if (length == 1)
      append_escaped(out, text.front());
    else
      out.append(text.substr(0, length));
    text.remove_prefix(length == 0 ? 1 : length);
  }
  out.push_back('"');
}

std::string to_json_string(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

Response make_problem(const Error& error, std::span<const ProblemMember> extra, std::optional<Duration> retry_after) {
  const CodeFacts& known = facts(error.code);
  Response response{.status = known.http_status, .content_type = "application/problem+json"};
  std::string& body = response.body;
  body.append(R"({"type":"/errors/)").append(known.name).append(R"(","title":)");
  append_json_string(body, known.title);
  body.append(R"(,"status":)").append(std::to_string(known.http_status));
  body.append(R"(,"code":")").append(known.name).append("\"");
  if (!error.detail.empty()) {
    body.append(R"(,"detail":)");
    append_json_string(body, error.detail);
  }
  body.append(known.retryable ? R"(,"retryable":true)" : R"(,"retryable":false)");
  for (const ProblemMember& member : extra) {
    body.push_back(',');
    append_json_string(body, member.name);
    body.append(":").append(member.json);
  }
  body.push_back('}');
  if (retry_after) {
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(*retry_after).count();
    response.add_header("Retry-After", std::to_string(seconds < 0 ? 0 : seconds));
  }
  return response;
}

}  // namespace latchkey::http
