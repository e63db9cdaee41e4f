// `latchkey serve --store postgres://…`, the real binary, with a database of the test's own.
#pragma once

#include <signal.h>

#include "base/clock.hpp"
#include "cli/cli_fixture.hpp"
#include "support/postgres/pg_client.hpp"
#include "support/postgres/pg_server.hpp"
#include "support/raw_client.hpp"

namespace latchkey {

using latchkey::testing::RawClient;
using ::testing::AllOf;

class ServePostgres : public CliTest {
 protected:
  ServePostgres() { environment_ = {"LATCHKEY_STORE=", "LATCHKEY_DATABASE=", "PGPASSWORD="}; }
  ~ServePostgres() override { PgServer::instance().give_back(database_); }

  static Words serve_words(const std::string& store) { return {"serve", "--listen", "127.0.0.1:0", "--store", store}; }
  // Returns after the server has printed its address.
  std::unique_ptr<Process> serve(const std::string& store) {
    auto server = start(serve_words(store));
    const std::string line = server->read_line();
    port_ = static_cast<std::uint16_t>(std::stoi(line.substr(line.rfind(':') + 1)));
    return server;
  }
  std::unique_ptr<Process> start_embedded() {
    auto server = start({"serve", "--listen", "127.0.0.1:0"});
    EXPECT_THAT(server->read_line(), HasSubstr("http://"));
    return server;
  }
  std::string post(const std::string& target, const std::string& body) const {
    RawClient client(port_);
    std::string token = read("data/admin.key");
    token.pop_back();
    client.send("POST " + target + " HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nAuthorization: Bearer " +
                token + "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
    return client.read_response();
  }
  static std::string member(const std::string& body, const std::string& name) {
    const std::size_t from = body.find("\"" + name + "\":") + name.size() + 3;
    std::string value = body.substr(from, body.find_first_of(",}", from) - from);
    std::erase(value, '"');
    return value;
  }
  static void stop(Process& server) {
    server.signal(SIGTERM);
    EXPECT_EQ(server.finish(), 0) << server.err;
    EXPECT_THAT(server.err, HasSubstr("stopped by signal 15"));
  }
  // A signal must end a server that has not begun to serve and cannot.
  static void expect_an_early_end(Process& server, int signal) {
    SystemClock clock;
    const Duration start = clock.elapsed();
    server.signal(signal);
    EXPECT_EQ(server.finish(), 0) << server.err;
    EXPECT_LT(clock.elapsed() - start, std::chrono::seconds{5});
    EXPECT_EQ(server.out, "");
    EXPECT_THAT(server.err, HasSubstr("stopped by signal " + std::to_string(signal) + " before it served"));
  }
  // The URL of another user, host or database.
  std::string url(const std::string& user, const std::string& host, const std::string& database) const {
    return "postgres://" + user + "@" + host + "/" + database;
  }
  std::string host() const { return "127.0.0.1:" + std::to_string(PgServer::instance().port()); }
  std::string name() const { return database_.substr(database_.rfind('/') + 1); }
  // Everything about the schema that a server could have changed.
  std::string schema_state() const {
    return PgClient(database_).ask_one(
        "SELECT coalesce((SELECT string_agg(m::text, ' ' ORDER BY m.version) FROM latchkey.migrations m), '') || "
        "(SELECT string_agg(c.oid::regclass || ' ' || c.relkind::text || c.relfilenode || coalesce(c.relacl::text, "
        "''), "
        "' ' ORDER BY c.oid) FROM pg_class c WHERE c.relnamespace = 'latchkey'::regnamespace)");
  }

  const std::string database_ = PgServer::instance().borrow_database();
  std::uint16_t port_ = 0;
};

}  // namespace latchkey
