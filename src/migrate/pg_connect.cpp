#include "migrate/pg_connect.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/suggest.hpp"
#include "migrate/migration_error.hpp"
#include "pg/dsn.hpp"

namespace latchkey::migrate {
namespace {

// Returns the option only if it cannot be a part of the password.
std::string find_unknown_option(const std::string& url) {
  const std::size_t query = url.find('?');
  if (query == url.npos || url.find('@', query) != url.npos || url.find("pass", query) != url.npos) return "";
  const std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)> all(PQconndefaults(), &PQconninfoFree);
  std::vector<std::string> known;
  for (const PQconninfoOption* one = all.get(); one != nullptr && one->keyword != nullptr; ++one)
    known.emplace_back(one->keyword);
  for (std::size_t at = query; at < url.size();) {
    const std::size_t end = std::min(url.find('&', at + 1), url.size());
    const std::string part = url.substr(at + 1, end - at - 1);
    const std::string name = part.substr(0, part.find('='));
    at = end;
    if (name.empty() || name == "ssl" || std::ranges::find(known, name) != known.end()) continue;
    const auto nearest = find_nearest(name, known);
    return "`" + name + "`" + (nearest ? "; did you mean `" + *nearest + "`?" : "");
  }
  return "";
}

// libpq writes a message on several lines, but an error has one line.
std::string join_lines(std::string_view text) {
  std::string joined;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    if (!line.empty()) joined.append(joined.empty() ? "" : "; ").append(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return joined;
}

std::map<std::string, std::string> parse_url(const std::string& url) {
  char* why = nullptr;
  const std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)> options(PQconninfoParse(url.c_str(), &why),
                                                                             &PQconninfoFree);
  PQfreemem(why);  // it may repeat the password
  if (const std::string unknown = options ? "" : find_unknown_option(url); !unknown.empty())
    throw MigrationError(Code::USAGE,
                         "the URL of the database has an option that PostgreSQL does not know: " + unknown);
  if (!options || !pg::describe(url))
    throw MigrationError(Code::USAGE,
                         "the URL of the database cannot be read (special characters must be percent-encoded)");
  std::map<std::string, std::string> settings;
  for (const PQconninfoOption* option = options.get(); option->keyword != nullptr; ++option)
    if (option->val != nullptr) settings[option->keyword] = option->val;
  return settings;
}

void ignore_notice(void*, const PGresult*) {}

}  // namespace

PgHandle connect_for_migrations(const std::string& url, const std::string& database) {
  auto settings = parse_url(url);
  if (!database.empty()) settings["dbname"] = database;
  settings["client_encoding"] = "UTF8";
  settings.emplace("application_name", "latchkey migrate");
  settings.emplace("connect_timeout", "10");
  if (settings["host"].find(',') != std::string::npos) settings.emplace("target_session_attrs", "read-write");
  PgHandle handle(nullptr, &PQfinish);
  for (const pg::HostUrl& host : pg::split_hosts(pg::make_conninfo(settings))) {
    handle.reset(PQconnectdb(host.conninfo.c_str()));
    if (PQstatus(handle.get()) == CONNECTION_OK) break;
  }
  if (PQstatus(handle.get()) != CONNECTION_OK)
    throw MigrationError(Code::STORE_UNAVAILABLE, "PostgreSQL: " + join_lines(PQerrorMessage(handle.get())));
  PQsetNoticeReceiver(handle.get(), &ignore_notice, nullptr);
  return handle;
}

std::optional<std::string> find_too_old(int version) {
  if (version >= 150000) return std::nullopt;
  return fmt::format("Latchkey's own schema needs PostgreSQL 15 or later; this is {}.{}", version / 10000,
                     version % 10000);
}

std::string quote_name(const std::string& name) {
  std::string quoted = "\"";
  for (const char c : name) quoted.append(c == '"' ? 2 : 1, c);
  return quoted + "\"";
}

}  // namespace latchkey::migrate
