#include "store/postgres/hosts.hpp"

#include <libpq-fe.h>

#include <algorithm>
#include <memory>

namespace latchkey::pg {
namespace {

constexpr Duration kPatience = std::chrono::seconds{5};

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> parts(1);
  for (const char c : list) {
    if (c == ',') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

std::string quote(const std::string& value) {
  std::string quoted = "'";
  for (const char c : value) {
    if (c == '\'' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "'";
}

}  // namespace

std::string make_conninfo(const std::map<std::string, std::string>& settings) {
  std::string text;
  for (const auto& [keyword, value] : settings)
    if (!value.empty()) text += (text.empty() ? "" : " ") + keyword + "=" + quote(value);
  return text;
}

std::vector<HostUrl> split_hosts(const std::string& url) {
  const std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)> options(PQconninfoParse(url.c_str(), nullptr),
                                                                             &PQconninfoFree);
  if (!options) return {{url, kPatience}};
  std::map<std::string, std::string> given;
  for (const PQconninfoOption* option = options.get(); option->keyword; ++option)
    if (option->val) given[option->keyword] = option->val;
  Duration patience = kPatience;
  if (const auto own = given.find("connect_timeout"); own != given.end() && std::atoi(own->second.c_str()) > 0)
    patience = std::chrono::seconds{std::atoi(own->second.c_str())};
  given["connect_timeout"] = std::to_string(std::max<std::int64_t>(patience.count() / 1000, 2));
  const auto hosts = split(given["host"]), addresses = split(given["hostaddr"]), ports = split(given["port"]);
  std::vector<HostUrl> all;
  for (std::size_t i = 0; i < std::max(hosts.size(), addresses.size()); ++i) {
    auto one = given;
    one["host"] = i < hosts.size() ? hosts[i] : "";
    one["hostaddr"] = i < addresses.size() ? addresses[i] : "";
    one["port"] = ports.size() == 1 ? ports.front() : i < ports.size() ? ports[i] : "";
    all.push_back({make_conninfo(one), patience});
  }
  return all;
}

}  // namespace latchkey::pg
