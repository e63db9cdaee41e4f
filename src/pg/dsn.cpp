#include "pg/dsn.hpp"

#include <libpq-fe.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>

namespace latchkey::pg {
namespace {

constexpr Duration kConnectTimeout = std::chrono::seconds{5};

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

// The application_name in pg_stat_activity, unless the URL sets one.
std::string default_application_name() {
  std::array<char, 65> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host.front() = '?';
  return "latchkey " + std::to_string(::getpid()) + "@" + host.data();
}

bool is_port(const std::string& port) {
  return port.empty() || (port.size() <= 5 && std::ranges::all_of(port, [](char c) { return c >= '0' && c <= '9'; }));
}

}  // namespace

std::optional<std::map<std::string, std::string>> read_settings(const std::string& url) {
  const std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)> options(PQconninfoParse(url.c_str(), nullptr),
                                                                             &PQconninfoFree);
  if (!options) return std::nullopt;
  std::map<std::string, std::string> given;
  for (const PQconninfoOption* option = options.get(); option->keyword; ++option)
    if (option->val) given[option->keyword] = option->val;
  return given;
}

std::vector<Host> list_hosts(const std::map<std::string, std::string>& settings) {
  const auto list = [&](const char* keyword) {
    const auto found = settings.find(keyword);
    return split(found == settings.end() ? "" : found->second);
  };
  const auto names = list("host"), addresses = list("hostaddr"), ports = list("port");
  std::vector<Host> hosts(std::max(names.size(), addresses.size()));
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    if (i < names.size()) hosts[i].name = names[i];
    if (i < addresses.size()) hosts[i].address = addresses[i];
    if (i < ports.size() || ports.size() == 1) hosts[i].port = ports.size() == 1 ? ports.front() : ports[i];
  }
  return hosts;
}

bool names_postgres(std::string_view store) {
  return store.starts_with("postgres://") || store.starts_with("postgresql://");
}

std::optional<std::string> describe(const std::string& url) {
  auto given = read_settings(url);
  if (!given || (*given)["host"].contains('@')) return std::nullopt;
  if (!std::ranges::all_of(split((*given)["port"]), is_port)) return std::nullopt;
  std::string hosts;
  for (const Host& host : list_hosts(*given))
    hosts += (hosts.empty() ? "@" : ",") + (host.name.empty() ? host.address : host.name) +
             (host.port.empty() ? "" : ":" + host.port);
  return "postgres://" + (*given)["user"] + hosts + "/" + (*given)["dbname"];
}

std::string make_conninfo(const std::map<std::string, std::string>& settings) {
  std::string text;
  for (const auto& [keyword, value] : settings)
    if (!value.empty()) text += (text.empty() ? "" : " ") + keyword + "=" + quote(value);
  return text;
}

std::vector<HostUrl> split_hosts(const std::string& url) {
  auto read = read_settings(url);
  if (!read) return {{url, kConnectTimeout}};
  auto& given = *read;
  Duration patience = kConnectTimeout;
  if (const auto own = given.find("connect_timeout"); own != given.end() && std::atoi(own->second.c_str()) > 0)
    patience = std::chrono::seconds{std::atoi(own->second.c_str())};
  given["connect_timeout"] = std::to_string(std::max<std::int64_t>(patience.count() / 1000, 2));
  given.try_emplace("fallback_application_name", default_application_name());
  given["client_encoding"] = "UTF8";  // overrides the environment and the URL: all texts sent are UTF-8
  std::vector<HostUrl> all;
  for (const Host& host : list_hosts(given)) {
    auto one = given;
    one["host"] = host.name;
    one["hostaddr"] = host.address;
    one["port"] = host.port;
    all.push_back({make_conninfo(one), patience});
  }
  return all;
}

}  // namespace latchkey::pg
