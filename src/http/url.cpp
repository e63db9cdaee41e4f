#include <charconv>

#include "http/chars.hpp"
#include "http/client.hpp"
#include "http/scan.hpp"

namespace latchkey::http {
namespace {

constexpr CharSet kNameChars = alphanumeric_and("-._");
constexpr CharSet kLiteralChars = alphanumeric_and(":.%");

bool consists_of(const CharSet& set, std::string_view text) {
  for (const char c : text)
    if (!is_in(set, c)) return false;
  return !text.empty();
}

}  // namespace

Result<Url> parse_url(std::string_view text) {
  const auto bad = [&] {
    const bool bare = text.find("://") == text.npos && !text.empty();
    const std::string given(text);
    return fail(Code::INVALID_ARGUMENT,
                "not an http:// address: " + given + (bare ? "; did you mean http://" + given + "?" : ""));
  };
  constexpr std::string_view kScheme = "http://";
  if (!equals_ignoring_case(text.substr(0, kScheme.size()), kScheme)) return bad();
  const std::string_view rest = text.substr(kScheme.size());
  const std::size_t slash = rest.find('/');
  const std::string_view authority = rest.substr(0, slash);
  std::string_view path = slash == std::string_view::npos ? std::string_view{} : rest.substr(slash);
  while (path.ends_with('/')) path.remove_suffix(1);
  if (find_not_visible(path.data(), path.data() + path.size()) != path.data() + path.size()) return bad();
  if (path.find_first_of("?#") != std::string_view::npos) return bad();

  const bool is_literal = authority.starts_with('[');
  const std::size_t host_end = is_literal ? authority.find(']') : authority.find(':');
  if (is_literal && host_end == std::string_view::npos) return bad();
  const std::string_view host = is_literal ? authority.substr(1, host_end - 1) : authority.substr(0, host_end);
  if (!consists_of(is_literal ? kLiteralChars : kNameChars, host)) return bad();

  Url url{.host = std::string(host), .authority = std::string(authority), .path = std::string(path)};
  const std::size_t port_at = is_literal ? host_end + 1 : std::min(host_end, authority.size());
  std::string_view port = authority.substr(port_at);
  if (port.empty()) return url;
  if (!port.starts_with(':')) return bad();
  port.remove_prefix(1);
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), url.port);
  if (error != std::errc{} || end != port.data() + port.size() || url.port == 0) return bad();
  return url;
}

}  // namespace latchkey::http
