#include "http/outgoing_url.hpp"

#include <curl/curl.h>

#include <algorithm>
#include <memory>

#include "http/chars.hpp"

namespace latchkey::http {
namespace {

using CurlUrl = std::unique_ptr<CURLU, decltype(&curl_url_cleanup)>;

std::string part_of(CURLU* url, CURLUPart part, unsigned flags = 0) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, flags) != CURLUE_OK) return {};
  const std::unique_ptr<char, decltype(&curl_free)> owned(text, curl_free);
  return text;
}

std::string lower_case(std::string text) {
  std::ranges::transform(text, text.begin(), to_lower);
  return text;
}

std::string parsed_origin(CURLU* url) {
  return part_of(url, CURLUPART_SCHEME) + "://" + lower_case(part_of(url, CURLUPART_HOST)) + ":" +
         part_of(url, CURLUPART_PORT, CURLU_DEFAULT_PORT);
}

}  // namespace

std::string origin_of(std::string_view url) {
  const std::size_t scheme_end = url.find("://");
  if (scheme_end == url.npos) return std::string(url);
  const std::size_t from = scheme_end + 3;
  const std::size_t end = std::min(url.find_first_of("/?#", from), url.size());
  std::string_view authority = url.substr(from, end - from);
  if (const std::size_t at = authority.rfind('@'); at != authority.npos) authority.remove_prefix(at + 1);
  std::string origin = lower_case(std::string(url.substr(0, from)).append(authority));
  // An IPv6 address has its colons in brackets.
  const bool has_port = authority.rfind(':') != authority.npos && !authority.ends_with(']');
  if (!has_port) origin.append(origin.starts_with("https:") ? ":443" : ":80");
  return origin;
}

std::optional<RedirectTarget> resolve_redirect(const std::string& url, std::string_view location) {
  const CurlUrl parsed(curl_url(), curl_url_cleanup);
  if (curl_url_set(parsed.get(), CURLUPART_URL, url.c_str(), 0) != CURLUE_OK) return std::nullopt;
  const std::string origin = parsed_origin(parsed.get());
  if (curl_url_set(parsed.get(), CURLUPART_URL, std::string(location).c_str(), CURLU_URLENCODE) != CURLUE_OK)
    return std::nullopt;
  const std::string scheme = part_of(parsed.get(), CURLUPART_SCHEME);
  if (scheme != "http" && scheme != "https") return std::nullopt;
  RedirectTarget target{.is_same_origin = parsed_origin(parsed.get()) == origin};
  if (!target.is_same_origin) {
    curl_url_set(parsed.get(), CURLUPART_USER, nullptr, 0);
    curl_url_set(parsed.get(), CURLUPART_PASSWORD, nullptr, 0);
  }
  target.url = part_of(parsed.get(), CURLUPART_URL);
  if (target.url.empty()) return std::nullopt;
  return target;
}

}  // namespace latchkey::http
