// Changes of Latchkey's own schema, up and down, while servers use it. The tests run the real binary.
#include "migrate/live_servers.hpp"

#include <signal.h>
#include <unistd.h>

#include "migrate/migrate_fixture.hpp"
#include "migrate/pg_target.hpp"
#include "support/postgres/pg_bouncer.hpp"
#include "support/raw_client.hpp"

namespace latchkey {
namespace {

using latchkey::testing::RawClient;
using ::testing::AllOf;
using namespace migrate;

class LiveServers : public MigrateTest {
 protected:
  std::unique_ptr<Process> serve(const std::string& store) {
    auto server = start({"serve", "--listen", "127.0.0.1:0", "--store", store});
    const std::string line = server->read_line();
    port_ = static_cast<std::uint16_t>(std::stoi(line.substr(line.rfind(':') + 1)));
    return server;
  }
  static void stop(Process& server) {
    server.signal(SIGTERM);
    EXPECT_EQ(server.finish(), 0) << server.err;
  }
  Answer down(const std::string& url, Words flags = {}) {
    Words all{"migrate", "down", "--to", "0", "--yes", "--database", url};
    all.insert(all.end(), flags.begin(), flags.end());
    return call(all);
  }
  std::string ask_server(const std::string& method, const std::string& target, const std::string& body) const {
    RawClient client(port_);
    std::string token = read("data/admin.key");
    token.pop_back();
    client.send(method + " " + target +
                " HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nAuthorization: Bearer " + token +
                "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
    return client.read_response();
  }
  std::string claim(const std::string& key) const {
    return ask_server("POST", "/v1/runs", R"({"function":"f","key":")" + key + R"("})");
  }
  // The schema and the ledger: everything that `down` would change.
  std::string look(const std::string& url) {
    PgTarget target({.database = url, .ledger = Ledger::own}, random_);
    std::string seen = target.describe();
    for (const Applied& one : target.read_ledger()) seen += one.name + one.applied_at + "\n";
    return seen;
  }
  // The same database as another role.
  std::string url_of(const std::string& role) {
    std::string url = database();
    return url.replace(url.find("latchkey@"), 9, role + "@");
  }

  SystemRandom random_;
  std::uint16_t port_ = 0;
};

TEST_P(LiveServers, DownIsRejectedAndNamesServers) {
  const auto server = serve(database());
  const std::string before = look(database());
  const Answer refused = down(database());
  EXPECT_EQ(refused.exit, 75) << refused.err;
  EXPECT_EQ(refused.out, "");
  char host[65] = {};
  ASSERT_EQ(::gethostname(host, sizeof host - 1), 0);
  EXPECT_THAT(refused.err,
              AllOf(HasSubstr("STORE_LOCKED: a server is running on this database (latchkey " +
                              std::to_string(server->pid()) + "@" + host + " from 127.0.0.1): stop it first"),
                    HasSubstr("nothing was taken back")));
  EXPECT_EQ(look(database()), before);
  EXPECT_THAT(claim("k"), HasSubstr("201 Created")) << "the server still accepts claims";
  stop(*server);
  EXPECT_EQ(down(database()).exit, 0);
}

// The server of an older version left its older schema behind.
TEST_P(LiveServers, UpIsRejectedToo) {
  const Words up{"migrate", "up", "--database", database()};
  ASSERT_EQ(call(up).exit, 0);
  const auto server = serve(database());
  EXPECT_EQ(call(up).out, "nothing to do\n") << "without a change, servers do not matter";
  ASSERT_EQ(call({"migrate", "down", "--yes", "--force", "--database", database()}).exit, 0);
  const std::string before = look(database());
  const Answer refused = call(up);
  EXPECT_EQ(refused.exit, 75) << refused.err;
  EXPECT_EQ(refused.out, "");
  EXPECT_THAT(refused.err, AllOf(HasSubstr("STORE_LOCKED: a server is running on this database (latchkey " +
                                           std::to_string(server->pid()) + "@"),
                                 HasSubstr("stop it first; nothing was applied")));
  EXPECT_EQ(look(database()), before);
  const Answer forced = call({"migrate", "up", "--force", "--database", database()});
  EXPECT_EQ(forced.exit, 0) << forced.err;
  EXPECT_THAT(forced.out, HasSubstr(" applied\n"));
  stop(*server);
}

// Neither an application_name in the URL, a pooler's sessions, nor an owner without pg_monitor hides a server.
TEST_P(LiveServers, AreFoundDespiteNamesPoolersAndRoles) {
  PgClient(PgServer::instance().url("postgres"))
      .execute("DROP ROLE IF EXISTS live_owner; CREATE ROLE live_owner LOGIN CREATEROLE; ALTER DATABASE " +
               database().substr(database().rfind('/') + 1) + " OWNER TO live_owner");
  const std::string owner = url_of("live_owner");
  ASSERT_EQ(call({"migrate", "up", "--database", owner}).exit, 0);
  const PgBouncer bouncer(PgServer::instance().port(), 3);
  const auto one = serve(database() + "?application_name=mine");
  const auto two = serve(bouncer.url(database().substr(database().rfind('/') + 1)));
  const std::string name_of_two = "latchkey " + std::to_string(two->pid()) + "@";
  const Answer refused = down(owner);
  EXPECT_EQ(refused.exit, 75);
  EXPECT_THAT(refused.err,
              AllOf(HasSubstr("STORE_LOCKED: 2 servers are running"), HasSubstr("mine"), HasSubstr(name_of_two)));
  stop(*one);
  stop(*two);
  // The pooler's sessions still exist and still have that server's name.
  EXPECT_NE(ask("SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE '" + name_of_two + "%'"), "0");
  EXPECT_EQ(find_live_servers(owner).size(), 0u);
  const Answer taken = down(owner);
  EXPECT_EQ(taken.exit, 0) << taken.err;
}

TEST_P(LiveServers, ReplyWithErrorsAfterForcedDown) {
  const auto server = serve(database());
  EXPECT_THAT(claim("k"), HasSubstr("201 Created"));
  const Answer taken = down(database(), {"--force"});
  EXPECT_EQ(taken.exit, 0) << taken.err;
  EXPECT_EQ(ask("SELECT to_regnamespace('latchkey') IS NULL"), "t");
  for (const std::string& answer : {claim("k"), claim("l"), ask_server("GET", "/v1/runs", "")})
    EXPECT_THAT(answer, AllOf(HasSubstr("503 "), HasSubstr("STORE_UNAVAILABLE"))) << answer;
  stop(*server);
}

INSTANTIATE_TEST_SUITE_P(Databases, LiveServers, ::testing::Values(Kind::postgres),
                         [](const auto&) { return "PostgreSQL"; });

}  // namespace
}  // namespace latchkey
