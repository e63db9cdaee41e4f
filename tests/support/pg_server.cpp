#include "support/pg_server.hpp"

#include "support/pg_client.hpp"

namespace latchkey {

PgServer& PgServer::instance() {
  static PgServer server;
  return server;
}

std::string PgServer::borrow_database() {
  if (free_.empty()) {
    const std::string name = "t" + std::to_string(++made_);
    PgClient(url("postgres")).execute("CREATE DATABASE " + name);
    return url(name);
  }
  std::string url_of = free_.back();
  free_.pop_back();
  return url_of;
}

void PgServer::give_back(const std::string& url_of) {
  PgClient(url_of).execute("SET client_min_messages = error; DROP SCHEMA IF EXISTS latchkey CASCADE");
  free_.push_back(url_of);
}

void PgServer::empty(const std::string& url_of) {
  PgClient(url_of).execute(
      "DO $$ DECLARE one regclass; BEGIN "
      "EXECUTE (SELECT 'TRUNCATE ' || string_agg(oid::regclass::text, ', ') FROM pg_class WHERE relkind = 'r' AND "
      "relnamespace = 'latchkey'::regnamespace AND relname <> 'migrations'); "
      "FOR one IN SELECT oid FROM pg_class WHERE relkind = 'S' AND relnamespace = 'latchkey'::regnamespace LOOP "
      "EXECUTE format('ALTER SEQUENCE %s RESTART', one); END LOOP; END $$");
}

}  // namespace latchkey
