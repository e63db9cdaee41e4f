// A user's program that comes to another PostgreSQL than before, a promoted standby or a restored backup, earlier than
// any server of Latchkey: it is given no fence that the lost one may have given out.
#include <gmock/gmock.h>

#include "conformance/store_test.hpp"
#include "support/postgres/pg_stores.hpp"

namespace latchkey {
namespace {

class SqlElsewhere : public PostgresStores, public testing::WithParamInterface<const char*> {
 protected:
  // A server comes, does something, and goes.
  void visit() {
    const auto server = open(url());
    EXPECT_TRUE(std::holds_alternative<Won>(Verbs(*server).claim(a_claim("visit " + std::to_string(++visits_)))));
  }
  void go_elsewhere() { user_.execute(std::string("UPDATE latchkey.place SET ") + GetParam() + " = '00000000'"); }
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

  int visits_ = 0;
  PgClient user_ = [this] {
    visit();
    PgClient session(url());
    session.execute("SET app.current_tenant = 'default'");
    return session;
  }();
};

INSTANTIATE_TEST_SUITE_P(By, SqlElsewhere, testing::Values("timeline", "system"),
                         [](const auto& what) { return what.param; });

TEST_P(SqlElsewhere, NoFenceIsGivenBeforeAServerHasCome) {
  const std::string held = begin("held");
  user_.execute("SELECT latchkey.complete_run(" + begin("done") + ", 'r')");
  user_.execute("SELECT latchkey.fail_run(" + begin("tried") + ", 'no')");
  go_elsewhere();
  for (const char* key : {"new", "tried"}) {
    EXPECT_THAT(refused(key), testing::StartsWith("LK503")) << key;
    EXPECT_THAT(refused(key), testing::HasSubstr("STORE_UNAVAILABLE")) << key;
  }
  EXPECT_EQ(count("keys"), "4") << "a refusal left something";
  EXPECT_EQ(count("runs"), "4");
  // What draws none goes on: it holds by what is here.
  EXPECT_EQ(user_.ask_one("SELECT status FROM latchkey.begin_run('f', 'done')"), "replayed");
  user_.execute("SELECT latchkey.heartbeat(" + held + ")");
  user_.execute("SELECT latchkey.complete_run(" + held + ", 'r')");
  EXPECT_EQ(user_.ask_one("SELECT status FROM latchkey.enqueue('f', 'job')"), "enqueued");

  visit();
  for (const char* key : {"new", "tried"}) {
    const std::string won = begin(key);
    ASSERT_FALSE(won.empty()) << key;
    EXPECT_GT(std::stoll(won.substr(won.rfind(' '))), 100'000'000'000) << key;
  }
}

}  // namespace
}  // namespace latchkey
