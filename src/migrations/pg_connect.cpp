#include "migrations/pg_connect.hpp"

#include <map>

#include "migrations/fault.hpp"
#include "store/postgres/hosts.hpp"

namespace latchkey::migrations {
namespace {

std::map<std::string, std::string> parse_url(const std::string& url) {
  char* why = nullptr;
  const std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)> options(PQconninfoParse(url.c_str(), &why),
                                                                             &PQconninfoFree);
  PQfreemem(why);  // it may repeat the password
  if (!options || !pg::describe(url))
    throw Stop(Code::USAGE, "the URL of the database cannot be read (special characters must be percent-encoded)");
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
    throw Stop(Code::STORE_UNAVAILABLE, std::string("PostgreSQL: ") + PQerrorMessage(handle.get()));
  PQsetNoticeReceiver(handle.get(), &ignore_notice, nullptr);
  return handle;
}

std::string quote_name(const std::string& name) {
  std::string quoted = "\"";
  for (const char c : name) quoted.append(c == '"' ? 2 : 1, c);
  return quoted + "\"";
}

}  // namespace latchkey::migrations
