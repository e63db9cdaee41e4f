// PostgreSQL's notices and warnings, a commit of unknown outcome, and a setting that an old server lacks.
#include "migrate/migrate_fixture.hpp"
#include "support/postgres/fault_proxy.hpp"

namespace latchkey {
namespace {

class MigrateNotices : public MigrateTest {};

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != text.npos; at += part.size()) count += 1;
  return count;
}

TEST_P(MigrateNotices, AreReportedOnceWithTheirFile) {
  add("0001_a",
      "CREATE TABLE a (id integer);\nDROP TABLE IF EXISTS nowhere;\n"
      "DO $$ BEGIN FOR i IN 1..9 LOOP RAISE WARNING 'careful' USING HINT = 'look'; END LOOP; END $$;\n",
      "DROP TABLE a;\nDROP TABLE IF EXISTS nothing;\n");
  const std::string notice = "latchkey: 0001_a.up.sql:2: NOTICE: table \"nowhere\" does not exist, skipping\n";
  const std::string warning = "latchkey: 0001_a.up.sql:3: WARNING: careful; look\n";
  for (const char* command : {"verify", "up"}) {
    const Answer answer = migrate(command);
    EXPECT_EQ(answer.exit, 0) << answer.err;
    EXPECT_EQ(count_of(answer.err, notice), 1u) << answer.err;
    EXPECT_EQ(count_of(answer.err, warning), 1u) << answer.err;
  }
  EXPECT_THAT(migrate("down", {"--yes"}).err, HasSubstr("latchkey: 0001_a.down.sql:2: NOTICE: "));
  EXPECT_EQ(call({"migrate", "up", "--database", database()}).err, "")
      << "notices of Latchkey's own migrations are not shown";
}

// A deferred trigger may raise a warning during the commit. That warning does not put the commit in doubt.
TEST_P(MigrateNotices, DeferredTriggerWarningIsNoDoubt) {
  add("0001_a",
      "CREATE TABLE a (id integer);\n"
      "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE WARNING 'late'; RETURN NULL; END $$;\n"
      "CREATE CONSTRAINT TRIGGER t AFTER INSERT ON a DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION f();\n"
      "INSERT INTO a VALUES (1);\n",
      "DROP TABLE a;\nDROP FUNCTION f();\n");
  const Answer answer = migrate("up");
  EXPECT_EQ(answer.exit, 0) << answer.err;
  EXPECT_THAT(answer.err, HasSubstr("latchkey: 0001_a.up.sql: WARNING: late\n"));
}

TEST_P(MigrateNotices, UnreplicatedCommitIsUnknown) {
  PgCluster alone({"synchronous_standby_names=absent", "synchronous_commit=on"});
  add_tables(1);
  const Words up{"migrate", "up", "--dir", dir(), "--database", alone.url()};
  const auto runner = start(up);
  PgClient watch(alone.url());
  const std::string waiting = "FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND backend_type = 'client backend'";
  watch.wait_until("SELECT count(*) > 0 " + waiting);
  watch.execute("SELECT pg_cancel_backend(pid) " + waiting);
  EXPECT_EQ(runner->finish(), 69);
  EXPECT_EQ(runner->out, "");
  EXPECT_THAT(runner->err, HasSubstr("may not have been replicated: its result is unknown; run it again"));
  EXPECT_EQ(call(up).out, "nothing to do\n");
}

// PostgreSQL before 14, and some operating systems, do not support client_connection_check_interval.
TEST_P(MigrateNotices, MissingOptionalSettingIsIgnored) {
  add_tables(1);
  FaultProxy proxy(PgServer::instance().port());
  proxy.garble("client_connection_check_interval");
  const Answer up =
      call({"migrate", "up", "--dir", dir(), "--database", proxy.url(database().substr(database().rfind('/') + 1))});
  EXPECT_EQ(up.exit, 0) << up.err;
  EXPECT_EQ(applied(), "1");
}

INSTANTIATE_TEST_SUITE_P(Databases, MigrateNotices, testing::Values(Kind::postgres),
                         [](const auto&) { return "PostgreSQL"; });

}  // namespace
}  // namespace latchkey
