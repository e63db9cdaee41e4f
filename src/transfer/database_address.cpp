#include "transfer/database_address.hpp"

#include <algorithm>
#include <ranges>

#include "pg/dsn.hpp"

namespace latchkey::transfer {
namespace {

// Escapes slashes, because a slash ends the hosts.
std::string encode(std::string_view database) {
  std::string text;
  for (const char c : database) text += c == '/' ? "%2F" : c == '%' ? "%25" : std::string(1, c);
  return text;
}

// Splits at the last slash: the folder of a socket has slashes, too.
std::pair<std::string_view, std::string_view> split_address(std::string_view address) {
  const std::size_t slash = std::min(address.rfind('/'), address.size());
  return {address.substr(0, slash), address.substr(slash)};
}

bool has_host(std::string_view hosts, std::string_view wanted) {
  return std::ranges::any_of(hosts | std::views::split(','),
                             [&](const auto& host) { return std::string_view(host) == wanted; });
}

}  // namespace

std::string make_address(const std::map<std::string, std::string>& settings) {
  std::string text;
  for (const pg::Host& host : pg::list_hosts(settings))
    text += (text.empty() ? "" : ",") + (host.address.empty() ? host.name : host.address) + ":" +
            (host.port.empty() ? "5432" : host.port);
  const auto database = settings.find("dbname");
  return text + "/" + encode(database == settings.end() ? "" : database->second);
}

bool is_same_database(std::string_view a, std::string_view b) {
  const auto [hosts, database] = split_address(a);
  const auto [others, other_database] = split_address(b);
  return database == other_database && std::ranges::any_of(hosts | std::views::split(','), [&](const auto& host) {
           return has_host(others, std::string_view(host));
         });
}

}  // namespace latchkey::transfer
