// A user's program that connects to a promoted standby or a restored backup before any Latchkey server does. It gets no
// fence, because the lost PostgreSQL server may have issued the same one.
#include <gmock/gmock.h>

#include "conformance/store_test.hpp"
#include "support/postgres/pg_stores.hpp"

namespace latchkey {
namespace {

class SqlOtherServer : public PostgresStores, public testing::WithParamInterface<const char*> {
 protected:
  // A Latchkey server connects, claims a key and stops.
  void run_server_once() {
    const auto server = open(url());
    EXPECT_TRUE(
        std::holds_alternative<Won>(Verbs(*server).claim(a_claim("server run " + std::to_string(++server_runs_)))));
  }
  void change_server_identity() {
    user_.execute(std::string("UPDATE latchkey.place SET ") + GetParam() + " = '00000000'");
  }
  std::string begin(const std::string& key) {
    return user_.ask_one("SELECT format('%L, %s', run, fence) FROM latchkey.begin_run('f', '" + key +
                         "', retry_policy => '{\"retries\": 9, \"first_ms\": 0}') WHERE status = 'won'");
  }
  std::string refused(const std::string& key) {
    try {
      return "not at all: " + begin(key);
    } catch (const std::runtime_error& found) {
      return found.what();
    }
  }
  std::string count(const std::string& table) { return user_.ask_one("SELECT count(*) FROM latchkey." + table); }

  int server_runs_ = 0;
  PgClient user_ = [this] {
    run_server_once();
    PgClient session(url());
    session.execute("SET app.current_tenant = 'default'");
    return session;
  }();
};

INSTANTIATE_TEST_SUITE_P(By, SqlOtherServer, testing::Values("timeline", "system"),
                         [](const auto& what) { return what.param; });

TEST_P(SqlOtherServer, NoFenceBeforeAServerConnects) {
  const std::string open = begin("open");
  user_.execute("SELECT latchkey.complete_run(" + begin("done") + ", 'r')");
  user_.execute("SELECT latchkey.fail_run(" + begin("tried") + ", 'no')");
  change_server_identity();
  for (const char* key : {"new", "tried"}) {
    EXPECT_THAT(refused(key), testing::StartsWith("LK503")) << key;
    EXPECT_THAT(refused(key), testing::HasSubstr("STORE_UNAVAILABLE")) << key;
  }
  EXPECT_EQ(count("keys"), "4") << "a refused call left a row";
  EXPECT_EQ(count("runs"), "4");
  // Calls that issue no fence succeed.
  EXPECT_EQ(user_.ask_one("SELECT status FROM latchkey.begin_run('f', 'done')"), "replayed");
  user_.execute("SELECT latchkey.heartbeat(" + open + ")");
  user_.execute("SELECT latchkey.complete_run(" + open + ", 'r')");
  EXPECT_EQ(user_.ask_one("SELECT status FROM latchkey.enqueue('f', 'job')"), "enqueued");

  run_server_once();
  for (const char* key : {"new", "tried"}) {
    const std::string won = begin(key);
    ASSERT_FALSE(won.empty()) << key;
    EXPECT_GT(std::stoll(won.substr(won.rfind(' '))), 100'000'000'000) << key;
  }
}

}  // namespace
}  // namespace latchkey
