#include "api/body.hpp"

#include <algorithm>

#include "keying/json_tree.hpp"

namespace latchkey::api {
namespace {

std::string to_lower(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? char(c | 0x20) : c; });
  return lower;
}

bool is_identity(std::string_view coding) { return coding.empty() || to_lower(coding) == "identity"; }

bool is_json_type(std::string_view type) {
  type = type.substr(0, type.find(';'));
  while (!type.empty() && (type.back() == ' ' || type.back() == '\t')) type.remove_suffix(1);
  const std::string lower = to_lower(type);
  return lower == "application/json" || (lower.starts_with("application/") && lower.ends_with("+json"));
}

// simdjson reports no position. The strict reader of keys does, so a text that was refused is read again.
Error add_position(Error error, std::string_view text) {
  constexpr std::string_view kMark = " at byte ";
  if (error.code != Code::INVALID_JSON) return error;
  JsonTree tree;
  const auto parsed = tree.parse(text);
  if (parsed) return error;
  const std::string& detail = parsed.error().detail;
  if (const std::size_t mark = detail.rfind(kMark); mark != detail.npos) error.detail += detail.substr(mark);
  return error;
}

}  // namespace

Result<wire::JsonObject> parse_body(const http::Request& request) {
  if (request.body.empty()) return wire::parse_object("");
  const auto type = request.find("content-type");
  if (!type || (*type != "application/json" && !is_json_type(*type)))
    return fail(Code::MEDIA_TYPE, "send the body as application/json");
  if (const auto coding = request.find("content-encoding"); coding && !is_identity(*coding))
    return fail(Code::MEDIA_TYPE, "send the body as it is, without Content-Encoding");
  auto object = wire::parse_object(request.body);
  if (!object) return std::unexpected(add_position(std::move(object.error()), request.body));
  return object;
}

}  // namespace latchkey::api
