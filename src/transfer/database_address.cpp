#include "transfer/database_address.hpp"

#include <algorithm>
#include <ranges>

#include "pg/dsn.hpp"

namespace latchkey::transfer {
namespace {

// Without the slash that ends the hosts.
std::string encode(std::string_view database) {
  std::string text;
  for (const char c : database) text += c == '/' ? "%2F" : c == '%' ? "%25" : std::string(1, c);
  return text;
}

// A socket's folder, too, has slashes: the last one counts.
std::pair<std::string_view, std::string_view> split_place(std::string_view place) {
  const std::size_t slash = std::min(place.rfind('/'), place.size());
  return {place.substr(0, slash), place.substr(slash)};
}

bool has_host(std::string_view hosts, std::string_view wanted) {
  return std::ranges::any_of(hosts | std::views::split(','),
                             [&](const auto& host) { return std::string_view(host) == wanted; });
}

}  // namespace

std::string make_place(const std::map<std::string, std::string>& settings) {
  std::string text;
  for (const pg::Host& host : pg::list_hosts(settings))
    text += (text.empty() ? "" : ",") + (host.address.empty() ? host.name : host.address) + ":" +
            (host.port.empty() ? "5432" : host.port);
  const auto database = settings.find("dbname");
  return text + "/" + encode(database == settings.end() ? "" : database->second);
}

bool is_same_place(std::string_view a, std::string_view b) {
  const auto [hosts, database] = split_place(a);
  const auto [others, other_database] = split_place(b);
  return database == other_database && std::ranges::any_of(hosts | std::views::split(','), [&](const auto& host) {
           return has_host(others, std::string_view(host));
         });
}

}  // namespace latchkey::transfer
