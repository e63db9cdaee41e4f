// Latchkey's own schema: the command that changes it, and a server's checks when it starts.
#include "migrate/own_schema.hpp"

#include <latch>
#include <set>
#include <thread>

#include "migrate/migrate_fixture.hpp"
#include "migrate/pg_target.hpp"

namespace latchkey {
namespace {

using namespace migrate;

class OwnMigrations : public MigrateTest {
 protected:
  SchemaState state() {
    const auto report = inspect_own_schema(database(), random_);
    EXPECT_TRUE(report) << to_string(report.error());
    return report->state;
  }
  // The error of a server that does not start. The server changes nothing.
  Error refusal() {
    PgTarget target({.database = database(), .ledger = Ledger::own}, random_);
    const std::string before =
        target.describe() + ask("SELECT coalesce(string_agg(m::text, ' '), '') FROM latchkey.migrations m");
    const auto prepared = prepare_own_schema(database(), random_);
    EXPECT_FALSE(prepared);
    EXPECT_EQ(target.describe() + ask("SELECT coalesce(string_agg(m::text, ' '), '') FROM latchkey.migrations m"),
              before);
    return prepared ? Error{} : prepared.error();
  }
  Answer own(const std::string& command, Words flags = {}) {
    Words all{"migrate", command, "--database", database()};
    all.insert(all.end(), flags.begin(), flags.end());
    return call(all);
  }
  std::string count() const { return std::to_string(own_migrations().migrations.size()); }

  SystemRandom random_;
};

// covers: E6
TEST_P(OwnMigrations, UpDownUpSucceeds) {
  EXPECT_EQ(own("verify").exit, 0) << own("verify").err;
  EXPECT_EQ(own("up").exit, 0);
  EXPECT_EQ(own("up").out, "nothing to do\n");
  EXPECT_EQ(ask("SELECT count(*) FROM latchkey.migrations"), count());
  EXPECT_EQ(ask("SELECT to_regclass('public.latchkey_migrations') IS NULL"), "t");
  EXPECT_EQ(state(), SchemaState::current);
  EXPECT_THAT(own("status").out, Not(HasSubstr("pending")));
  EXPECT_EQ(own("down", {"--to", "0", "--yes"}).exit, 0);
  EXPECT_EQ(ask("SELECT to_regnamespace('latchkey') IS NULL"), "t");
  EXPECT_EQ(state(), SchemaState::empty);
  EXPECT_EQ(own("up").exit, 0);
}

// The command needs neither a database nor a user's folder.
TEST_P(OwnMigrations, PlansAreShown) {
  const Answer shown = call({"migrate", "plan"}), json = call({"migrate", "plan", "--json"});
  EXPECT_EQ(shown.exit, 0) << shown.err;
  EXPECT_EQ(json.exit, 0) << json.err;
  ASSERT_FALSE(own_migrations().migrations.empty());
  for (const Migration& one : own_migrations().migrations) {
    EXPECT_THAT(shown.out, HasSubstr(one.label + ": " + one.plan.change));
    EXPECT_THAT(json.out, HasSubstr("\"" + one.label + "\""));
  }
  EXPECT_EQ(shown.err + json.err, "");
}

TEST_P(OwnMigrations, FirstServerSetsUpAndOthersWait) {
  database();
  constexpr int kServers = 6;
  std::latch start(kServers);
  std::vector<std::jthread> servers;
  std::atomic<int> good{0};
  for (int i = 0; i < kServers; ++i)
    servers.emplace_back([&] {
      SystemRandom random;
      start.arrive_and_wait();
      const auto prepared = prepare_own_schema(database(), random);
      EXPECT_TRUE(prepared) << to_string(prepared.error());
      if (prepared) ++good;
    });
  servers.clear();
  EXPECT_EQ(good, kServers);
  EXPECT_EQ(ask("SELECT count(*) FROM latchkey.migrations"), count());
  // All migrations were applied in one transaction, so no session ever saw a part of them.
  EXPECT_EQ(ask("SELECT count(DISTINCT xmin::text) FROM latchkey.migrations"), "1");
  EXPECT_EQ(state(), SchemaState::current);
}

TEST_P(OwnMigrations, OlderSchemaIsReportedNotChanged) {
  ASSERT_EQ(own("up", {"--to", "1"}).exit, 0);
  EXPECT_EQ(state(), SchemaState::older);
  const Error error = refusal();
  EXPECT_EQ(error.code, Code::SCHEMA_OLDER);
  EXPECT_THAT(error.detail, HasSubstr("latchkey migrate up"));
  EXPECT_EQ(own("up").exit, 0);
  EXPECT_TRUE(prepare_own_schema(database(), random_));
}

TEST_P(OwnMigrations, NewerSchemaIsReportedNotChanged) {
  ASSERT_EQ(own("up").exit, 0);
  ask("INSERT INTO latchkey.migrations VALUES (9999, 'future', 'x')");
  EXPECT_EQ(state(), SchemaState::newer);
  EXPECT_EQ(refusal().code, Code::SCHEMA_NEWER);
  const Answer up = own("up");
  EXPECT_EQ(up.exit, 69);
  EXPECT_THAT(up.err, HasSubstr("SCHEMA_NEWER"));
}

TEST_P(OwnMigrations, ForeignSchemaIsNotChanged) {
  ASSERT_EQ(own("up").exit, 0);
  ask("UPDATE latchkey.migrations SET checksum = 'other' WHERE version = 1");
  EXPECT_EQ(refusal().code, Code::MIGRATION_CHANGED);
  PgClient(database())
      .execute(
          "DROP SCHEMA latchkey CASCADE; CREATE SCHEMA latchkey; CREATE TABLE latchkey.migrations (version bigint, "
          "name text, checksum text, applied_at timestamptz)");
  EXPECT_EQ(state(), SchemaState::foreign);
  EXPECT_EQ(refusal().code, Code::STORE_FORMAT);
}

TEST_P(OwnMigrations, RolesOfOtherDatabasesStay) {
  ASSERT_EQ(own("up").exit, 0);
  const std::string other = make_pg_database();
  ASSERT_EQ(call({"migrate", "up", "--database", other}).exit, 0);
  const Answer down = own("down", {"--to", "0", "--yes"});
  EXPECT_EQ(down.exit, 0) << down.err;
  EXPECT_THAT(down.err, HasSubstr("other databases of the server may use them"));
  EXPECT_EQ(PgClient(other).ask_one("SELECT count(*) FROM latchkey.check_security()"), "0");
}

TEST_P(OwnMigrations, ServerNeedsNoOwnership) {
  PgClient admin(PgServer::instance().url("postgres"));
  admin.execute("DROP ROLE IF EXISTS mere_server; CREATE ROLE mere_server LOGIN");
  ASSERT_EQ(own("up").exit, 0);
  std::string url = database();
  url.replace(url.find("latchkey@"), 9, "mere_server@");
  const auto stranger = prepare_own_schema(url, random_);
  ASSERT_FALSE(stranger);
  EXPECT_EQ(stranger.error().code, Code::FORBIDDEN);
  EXPECT_THAT(stranger.error().detail, HasSubstr("a member of latchkey_engine"));
  admin.execute("GRANT latchkey_engine, latchkey_tenant, latchkey_service TO mere_server");
  const auto prepared = prepare_own_schema(url, random_);
  EXPECT_TRUE(prepared) << to_string(prepared.error());
  EXPECT_THROW(PgClient(url).execute("DELETE FROM latchkey.migrations"), std::runtime_error);
  EXPECT_EQ(ask("SELECT count(*) FROM latchkey.check_security()"), "0");
}

// Roles belong to the whole cluster, so roles that exist already must not be created again.
TEST_P(OwnMigrations, RemedyForMissingRolesIsExecutable) {
  PgClient admin(PgServer::instance().url("postgres"));
  const std::string other = make_pg_database();
  ASSERT_TRUE(prepare_own_schema(other, random_));  // creates the roles
  admin.execute("DROP ROLE IF EXISTS bare_owner; CREATE ROLE bare_owner LOGIN");
  std::string url = database();
  admin.execute("ALTER DATABASE " + url.substr(url.rfind('/') + 1) + " OWNER TO bare_owner");
  url.replace(url.find("latchkey@"), 9, "bare_owner@");
  const auto server = prepare_own_schema(url, random_);
  ASSERT_FALSE(server);
  for (const std::string& said : {server.error().detail, call({"migrate", "up", "--database", url}).err}) {
    EXPECT_THAT(said, Not(HasSubstr("CREATE ROLE"))) << said;
    const std::size_t from = said.find("once: ");
    ASSERT_NE(from, said.npos) << said;
    admin.execute(said.substr(from + 6, said.rfind(';') - from - 6));
  }
  EXPECT_EQ(call({"migrate", "up", "--database", url}).exit, 0);
}

// With 0001 alone, the schema would have no row-level security between tenants.
TEST_P(OwnMigrations, UpIsAtomic) {
  PgClient admin(PgServer::instance().url("postgres"));
  admin.execute("DROP ROLE IF EXISTS poor_owner; CREATE ROLE poor_owner LOGIN");
  std::string url = database();
  admin.execute("ALTER DATABASE " + url.substr(url.rfind('/') + 1) + " OWNER TO poor_owner");
  url.replace(url.find("latchkey@"), 9, "poor_owner@");
  const Answer refused = call({"migrate", "up", "--database", url});
  EXPECT_EQ(refused.exit, 1);
  EXPECT_EQ(refused.out, "");
  EXPECT_THAT(refused.err, HasSubstr("MIGRATION_FAILED: nothing was applied: 0002_security.up.sql:"));
  EXPECT_EQ(ask("SELECT to_regnamespace('latchkey') IS NULL"), "t");
  EXPECT_EQ(call({"migrate", "up", "--to", "1", "--database", url}).out, "0001_runs applied\n");
  ASSERT_EQ(own("up").exit, 0);
  EXPECT_EQ(ask("SELECT count(DISTINCT xmin::text) FROM latchkey.migrations WHERE version > 1"), "1");
}

// An event trigger simulates the other session: it creates a table as soon as the schema exists.
TEST_P(OwnMigrations, ConcurrentlyCreatedTablesAreIgnored) {
  PgClient(database())
      .execute(
          "CREATE FUNCTION public.meddle() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN CREATE TABLE "
          "public.meanwhile (id integer); END'; CREATE EVENT TRIGGER meddle ON ddl_command_end WHEN TAG IN ('CREATE "
          "SCHEMA') EXECUTE FUNCTION public.meddle()");
  const auto prepared = prepare_own_schema(database(), random_);
  EXPECT_TRUE(prepared) << to_string(prepared.error());
  EXPECT_EQ(ask("SELECT to_regclass('public.meanwhile') IS NOT NULL"), "t");
  EXPECT_EQ(own("down", {"--to", "0", "--yes"}).exit, 0);
}

TEST_P(OwnMigrations, TerminalAsksForEachStepOnce) {
  ASSERT_EQ(own("up").exit, 0);
  Terminal terminal = start_on_terminal({"migrate", "down", "--to", "0", "--database", database()});
  std::string seen;
  std::set<std::string> steps;
  const auto& all = own_migrations().migrations;
  for (auto one = all.rbegin(); one != all.rend(); ++one) {
    for (const PlanStep& step : one->plan.steps) {
      if (step.runs_down) break;
      if (!steps.insert(step.text).second) continue;
      seen += terminal.read_until(one->label + ": " + step.text + ": done? [y/N] ");
      terminal.type("y\n");
    }
    seen += terminal.read_until("take " + one->label + " back (");
    terminal.type("y\n");
  }
  EXPECT_EQ(terminal.finish(), 0);
  EXPECT_EQ(ask("SELECT to_regnamespace('latchkey') IS NULL"), "t");
  const std::string question = "Stop every server on this database: done?";
  EXPECT_NE(seen.find(question), seen.npos);
  EXPECT_EQ(seen.find(question), seen.rfind(question));
}

TEST_P(OwnMigrations, OwnerNeedsNoSuperuser) {
  PgClient admin(PgServer::instance().url("postgres"));
  admin.execute("DROP ROLE IF EXISTS plain_owner; CREATE ROLE plain_owner LOGIN CREATEROLE CREATEDB");
  std::string url = database();
  admin.execute("ALTER DATABASE " + url.substr(url.rfind('/') + 1) + " OWNER TO plain_owner");
  url.replace(url.find("latchkey@"), 9, "plain_owner@");
  for (const Words& flags : {Words{"verify"}, {"up"}, {"down", "--to", "0", "--yes"}, {"up"}}) {
    Words all{"migrate"};
    all.insert(all.end(), flags.begin(), flags.end());
    all.insert(all.end(), {"--database", url});
    const Answer answer = call(all);
    EXPECT_EQ(answer.exit, 0) << flags[0] << answer.err;
  }
  EXPECT_TRUE(prepare_own_schema(url, random_));
}

TEST_P(OwnMigrations, DownFailsOnDependentObjects) {
  ASSERT_EQ(own("up", {"--to", "1"}).exit, 0);
  ask("CREATE VIEW public.mine AS SELECT seq FROM latchkey.runs");
  const Answer refused = own("down", {"--to", "0", "--yes"});
  EXPECT_EQ(refused.exit, 1);
  EXPECT_THAT(refused.err, HasSubstr("MIGRATION_FAILED: 0001_runs.down.sql"));
  EXPECT_THAT(refused.err, HasSubstr("view public.mine depends on"));
  EXPECT_EQ(ask("SELECT count(*) FROM public.mine"), "0");
}

// A dependent view blocks the last step only. Without one transaction, the first steps would drop row-level security.
TEST_P(OwnMigrations, DownIsAtomic) {
  ASSERT_EQ(own("up").exit, 0);
  ask("CREATE SCHEMA acme; CREATE VIEW acme.v AS SELECT * FROM latchkey.runs");
  PgTarget target({.database = database(), .ledger = Ledger::own}, random_);
  const std::string before = target.describe();
  const Answer refused = own("down", {"--to", "0", "--yes"});
  EXPECT_EQ(refused.exit, 1);
  EXPECT_EQ(refused.out, "");
  EXPECT_THAT(refused.err, HasSubstr("view acme.v depends on"));
  EXPECT_THAT(refused.err, HasSubstr("nothing was taken back"));
  EXPECT_EQ(target.describe(), before);
  EXPECT_EQ(ask("SELECT count(*) FROM latchkey.migrations"), count());
  EXPECT_EQ(state(), SchemaState::current);
  ask("DROP VIEW acme.v");
  EXPECT_THAT(own("down", {"--to", "0", "--yes"}).out, HasSubstr("0001_runs taken_back"));
}

TEST_P(OwnMigrations, SqlParsingSettingsDoNotMatter) {
  const std::string url =
      database() + "?options=-c%20quote_all_identifiers%3Don%20-c%20standard_conforming_strings%3Doff";
  ASSERT_EQ(call({"migrate", "up", "--database", url}).exit, 0);
  PgClient client(url);
  EXPECT_EQ(client.ask_one("SELECT count(*) FROM latchkey.check_security()"), "0");
  ask("ALTER FUNCTION latchkey.check_security() RESET quote_all_identifiers");
  EXPECT_NE(client.ask_one("SELECT count(*) FROM latchkey.check_security()"), "0")
      << "without the function's own setting, the check fails";
}

TEST_P(OwnMigrations, DefaultPrivilegesGrantNothing) {
  PgClient admin(database());
  admin.execute("DROP ROLE IF EXISTS eager; CREATE ROLE eager");
  for (const char* things : {"TABLES", "SEQUENCES", "FUNCTIONS", "SCHEMAS"})
    admin.execute("ALTER DEFAULT PRIVILEGES GRANT ALL ON " + std::string(things) + " TO eager, PUBLIC");
  const Answer up = own("up");
  EXPECT_EQ(up.exit, 0) << up.err;
  EXPECT_EQ(ask("SELECT coalesce(string_agg(problem, '; '), '') FROM latchkey.check_security()"), "");
  EXPECT_EQ(ask("SELECT has_schema_privilege('eager', 'latchkey', 'USAGE')"), "f");
  EXPECT_EQ(ask("SELECT has_table_privilege('eager', 'latchkey.job_runs', 'SELECT')"), "f");
  const Answer down = own("down", {"--to", "0", "--yes"});
  EXPECT_EQ(down.exit, 0) << down.err;
  admin.execute("DROP OWNED BY eager; DROP ROLE eager");
}

INSTANTIATE_TEST_SUITE_P(Databases, OwnMigrations, testing::Values(Kind::postgres),
                         [](const auto&) { return "PostgreSQL"; });

}  // namespace
}  // namespace latchkey
