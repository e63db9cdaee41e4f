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

// None: it cannot be read.
std::optional<std::map<std::string, std::string>> read_settings(const std::string& url) {
  const std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)> options(PQconninfoParse(url.c_str(), nullptr),
                                                                             &PQconninfoFree);
  if (!options) return std::nullopt;
  std::map<std::string, std::string> given;
  for (const PQconninfoOption* option = options.get(); option->keyword; ++option)
    if (option->val) given[option->keyword] = option->val;
  return given;
}

bool is_port(const std::string& port) {
  return port.empty() || (port.size() <= 5 && std::ranges::all_of(port, [](char c) { return c >= '0' && c <= '9'; }));
}

}  // namespace

std::optional<std::string> describe(const std::string& url) {
  auto given = read_settings(url);
  if (!given || (*given)["host"].contains('@')) return std::nullopt;
  const auto hosts = split((*given)["host"]), ports = split((*given)["port"]);
  if (!std::ranges::all_of(ports, is_port)) return std::nullopt;
  std::string text = "postgres://" + (*given)["user"];
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    const std::string port = ports.size() == 1 ? ports.front() : i < ports.size() ? ports[i] : "";
    text += (i == 0 ? "@" : ",") + hosts[i] + (port.empty() ? "" : ":" + port);
  }
  return text + "/" + (*given)["dbname"];
}

std::string make_conninfo(const std::map<std::string, std::string>& settings) {
  std::string text;
  for (const auto& [keyword, value] : settings)
    if (!value.empty()) text += (text.empty() ? "" : " ") + keyword + "=" + quote(value);
  return text;
}

std::vector<HostUrl> split_hosts(const std::string& url) {
  auto read = read_settings(url);
  if (!read) return {{url, kPatience}};
  auto& given = *read;
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
