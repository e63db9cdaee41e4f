// origin_of and resolve_redirect: the URLs of outgoing calls. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace latchkey::http {

// "https://example.com:443": the scheme, host and port, in one form for the limit of connections. For a text that is
// not a URL, any text: libcurl rejects it later.
std::string origin_of(std::string_view url);

struct RedirectTarget {
  std::string url;
  bool is_same_origin = false;  // same scheme, host and port
};

// Resolves a Location against the URL that sent it. Empty when the result is not an http or https URL. A target of
// another origin has no user and password.
std::optional<RedirectTarget> resolve_redirect(const std::string& url, std::string_view location);

}  // namespace latchkey::http
