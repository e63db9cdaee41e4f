// A hostile tenant in the database: every table, every view and every function, with every trick that a session has.
#include <algorithm>
#include <cctype>

#include "integration/sql_runs.hpp"
#include "support/standings.hpp"

namespace latchkey {
namespace {

using namespace std::chrono_literals;

// Two tenants with rows in every table; whatever says "globex" is none of acme's business.
class SqlHostile : public SqlTest {
 protected:
  SqlHostile() {
    for (const char* tenant : {"acme", "globex"}) fill(tenant);
    foreign_ = admin.row(
        "SELECT (SELECT id FROM latchkey.runs WHERE tenant = 'globex' AND convert_from(key, 'UTF8') = 'globex-open'), "
        "(SELECT fence FROM latchkey.states s JOIN latchkey.runs r USING (seq) WHERE s.tenant = 'globex' AND "
        "convert_from(r.key, 'UTF8') = 'globex-open'), "
        "(SELECT id FROM latchkey.dead_letters WHERE tenant = 'globex'), latchkey.name_uuid('globex')");
  }

  void fill(const std::string& tenant) {
    Sql session = service(tenant);
    const auto won = session.row("SELECT run, fence FROM latchkey.begin_run('f', '" + tenant +
                                 "-failed', retries => 0, input => '" + tenant + "')");
    session.run("SELECT latchkey.fail_run('" + *won[0] + "', " + *won[1] + ", 'secret of " + tenant + "')");
    const auto done = session.row("SELECT run, fence FROM latchkey.begin_run('f', '" + tenant + "-done')");
    session.run("SELECT latchkey.complete_run('" + *done[0] + "', " + *done[1] + ", 'result of " + tenant + "')");
    const auto open = session.row("SELECT run, fence FROM latchkey.begin_run('f', '" + tenant + "-open')");
    session.run("SELECT latchkey.enqueue('" + tenant + "-job', after => ARRAY['" + *open[0] + "']::uuid[])");
    session.run("SELECT latchkey.declare_transition('" + tenant + "', 'a', 'go', 'b'); SELECT latchkey.transition('" +
                tenant + "', 'e', 'go', start => 'a')");
    const std::string number = tenant == "acme" ? "900001" : "910001";
    admin.run("INSERT INTO latchkey.blocks (lo, hi, tenant, function, priority, due) VALUES (" + number + ", " +
              number + ", '" + tenant + "', '" + tenant +
              "', 0, 0);"
              "INSERT INTO latchkey.outcomes VALUES (" +
              number + ", " + number + ", '" + tenant + "', 1, 0, 1, '" + tenant +
              "');"
              "INSERT INTO latchkey.duplicates VALUES (" +
              number + ", '" + tenant + "', '" + tenant +
              "');"
              "INSERT INTO latchkey.dead_letter_steps SELECT seq, generation, tenant, 2, '" +
              tenant + "', 1, '' FROM latchkey.dead_letter_members WHERE tenant = '" + tenant +
              "';"
              "INSERT INTO latchkey.members VALUES ('" +
              tenant + "', '" + tenant + "-admin', 'org-admin'), ('" + tenant + "', '" + tenant +
              "-viewer', 'viewer');"
              "INSERT INTO latchkey.tokens VALUES ('" +
              tenant + "', '', '', 0, '" + tenant +
              "', 0);"
              "INSERT INTO latchkey.batches VALUES (gen_random_uuid(), 0)");
  }

  std::vector<std::string> relations() {
    std::vector<std::string> names;
    for (const auto& row : admin.rows("SELECT oid::regclass FROM pg_class WHERE relnamespace = "
                                      "'latchkey'::regnamespace AND relkind IN ('r', 'v') ORDER BY 1"))
      names.push_back(*row[0]);
    return names;
  }
  bool is_foreign(const std::string& text) const {
    return text.find("globex") != text.npos || text.find("676c6f626578") != text.npos ||
           text.find(*foreign_[0]) != text.npos || text.find(*foreign_[2]) != text.npos ||
           text.find(*foreign_[3]) != text.npos;
  }
  // What the session can read of everything, and that nothing of it is globex's.
  std::size_t read_all(Sql& session) {
    std::size_t seen = 0;
    for (const std::string& name : relations()) {
      const bool in_transaction = session.in_transaction();
      if (in_transaction) session.run("SAVEPOINT before");
      try {
        for (const auto& row : session.rows("SELECT t::text FROM " + name + " t")) {
          EXPECT_FALSE(is_foreign(*row[0])) << name << ": " << *row[0];
          ++seen;
        }
      } catch (const SqlError& error) {
        EXPECT_EQ(error.state, "42501") << name << ": " << error.what();
        if (in_transaction) session.run("ROLLBACK TO before");
      }
    }
    return seen;
  }
  void expect_writes_nothing(Sql& session) {
    for (const std::string& name : relations())
      for (const std::string& write :
           {"DELETE FROM " + name, "INSERT INTO " + name + " SELECT t.* FROM " + name + " t", "TRUNCATE " + name}) {
        try {
          session.run(write);
          ADD_FAILURE() << write;
        } catch (const SqlError& error) {
          EXPECT_TRUE(error.state == "42501" || error.state == "55000" || error.state == "42809" ||
                      error.state == "0A000")
              << write << ": " << error.what();
        }
      }
  }

  std::vector<Value> foreign_;  // globex's open run, its fence, its dead letter, its UUID
};

TEST_F(SqlHostile, EveryTableHasRowsOfBoth) {
  for (const std::string& name : relations()) {
    if (name == "latchkey.place" || name == "latchkey.tenant_roles") continue;
    EXPECT_NE(admin.one("SELECT count(*) FROM " + name), "0") << name << " is not tried by these tests";
  }
}

TEST_F(SqlHostile, ATenantSeesItsRowsAndNoOthers) {
  Sql believed = service("acme");
  EXPECT_GT(read_all(believed), 20u);
  expect_writes_nothing(believed);
  Sql bound = connect(bound_role("acme"));
  EXPECT_GT(read_all(bound), 20u);
  expect_writes_nothing(bound);
}

TEST_F(SqlHostile, NoTenantSeesNothing) {
  const std::string role = make_role("unset");
  admin.run("GRANT latchkey_service TO " + role);
  Sql session = connect(role);
  EXPECT_EQ(read_all(session), 0u);
  session.run("SET app.current_tenant = ''");
  EXPECT_EQ(read_all(session), 0u);
  EXPECT_EQ(refusal(session, "SELECT latchkey.begin_run('f', 'k')").state, "LK403");
  session.run("SET app.current_tenant = 'no such tenant'");
  EXPECT_EQ(read_all(session), 0u);
  EXPECT_EQ(refusal(session, "SELECT latchkey.begin_run('f', 'k')").detail, "INVALID_ARGUMENT");
  session.run("SET app.current_tenant = '*'");
  EXPECT_EQ(read_all(session), 0u);
}

TEST_F(SqlHostile, TheSettingIsBelievedOnlyForServices) {
  const std::string role = make_role("liar");
  admin.run("GRANT latchkey_tenant TO " + role);
  Sql session = connect(role);
  session.run("SET app.current_tenant = 'acme'");
  EXPECT_EQ(read_all(session), 0u);
  session.run("SET ROLE latchkey_tenant");
  EXPECT_EQ(read_all(session), 0u);
  EXPECT_EQ(refusal(session, "SELECT latchkey.begin_run('f', 'k')").detail, "FORBIDDEN");
  Sql stranger = connect(make_role("stranger"));
  stranger.run("SET app.current_tenant = 'acme'");
  EXPECT_EQ(read_all(stranger), 0u);
  EXPECT_EQ(refusal(stranger, "SELECT latchkey.begin_run('f', 'k')").state, "42501");
}

TEST_F(SqlHostile, ABoundRoleTriesToBeAnother) {
  const std::string role = bound_role("acme");
  admin.run("GRANT latchkey_service TO " + role);  // even so: its setting is ignored
  Sql session = connect(role);
  const std::size_t own = read_all(session);
  for (const char* trick :
       {"SET app.current_tenant = 'globex'", "SELECT set_config('app.current_tenant', 'globex', false)",
        "SET ROLE latchkey_tenant", "SET ROLE latchkey_service", "BEGIN; SET LOCAL app.current_tenant = 'globex'",
        "RESET ROLE"}) {
    session.run(trick);
    EXPECT_EQ(session.one("SELECT latchkey.current_tenant()"), "acme") << trick;
    EXPECT_EQ(read_all(session), own) << trick;
    if (std::string(trick).starts_with("BEGIN")) session.run("COMMIT");
  }
  for (const char* trick :
       {"SET ROLE latchkey_engine", "SET ROLE latchkey", "SET SESSION AUTHORIZATION latchkey",
        "SET SESSION AUTHORIZATION latchkey_engine", "GRANT latchkey_engine TO CURRENT_USER",
        "ALTER TABLE latchkey.runs DISABLE ROW LEVEL SECURITY", "CREATE POLICY mine ON latchkey.runs USING (true)",
        "CREATE TABLE latchkey.mine ()", "INSERT INTO latchkey.tenant_roles VALUES (session_user, 'globex')",
        "UPDATE latchkey.tenant_roles SET tenant = 'globex'",
        "INSERT INTO latchkey.members VALUES ('acme', 'me', 'org-admin')",
        "SET row_security = off; SELECT * FROM latchkey.runs"})
    EXPECT_EQ(refusal(session, trick).state, "42501") << trick;
  // Its runs are acme's, whatever it says.
  session.run("RESET row_security; SET app.current_tenant = 'globex'");
  session.run("SELECT latchkey.begin_run('f', 'mine')");
  EXPECT_EQ(admin.one("SELECT tenant FROM latchkey.runs WHERE convert_from(key, 'UTF8') = 'mine'"), "acme");
}

TEST_F(SqlHostile, FunctionsInAQuerySeeNoRowsThatItsReaderMayNot) {
  Sql session = connect(bound_role("acme"));
  session.run(
      "CREATE FUNCTION pg_temp.leak(t text) RETURNS boolean LANGUAGE plpgsql COST 0.0001 AS "
      "'BEGIN IF t LIKE ''%globex%'' THEN RAISE EXCEPTION ''leaked''; END IF; RETURN true; END'");
  for (const std::string& name : relations()) {
    try {
      session.run("SELECT count(*) FROM " + name + " t WHERE pg_temp.leak(t::text)");
    } catch (const SqlError& error) {
      EXPECT_EQ(error.state, "42501") << name << ": " << error.what();
    }
  }
}

TEST_F(SqlHostile, ForeignIdsAreUnknownInEveryFunction) {
  Sql session = service("acme");
  const std::string run = *foreign_[0], fence = *foreign_[1], letter = *foreign_[2], unknown = to_string(id_of(123456));
  const std::vector<std::string> calls{"complete_run('{}', " + fence + ")", "fail_run('{}', " + fence + ", 'm')",
                                       "heartbeat('{}', " + fence + ")", "enqueue('f', after => ARRAY['{}']::uuid[])",
                                       "acknowledge_dlq_entry('{}', 'acme-admin')"};
  for (const std::string& call : calls) {
    const auto with = [&](const std::string& id) {
      SqlError error = refusal(session, "SELECT latchkey." + std::string(call).replace(call.find("{}"), 2, id));
      std::string text = error.state + " " + error.detail + " " + error.what();
      for (std::size_t at; (at = text.find(id)) != text.npos;) text.replace(at, id.size(), "ID");
      return text;
    };
    EXPECT_EQ(with(call.starts_with("ack") ? letter : run), with(unknown));
    EXPECT_EQ(with(run).substr(0, 2), "LK");
  }
  EXPECT_EQ(refusal(session, "SELECT latchkey.transition('globex', 'e', 'go')").detail, "NOT_FOUND");
  EXPECT_EQ(admin.one("SELECT status FROM latchkey.states s JOIN latchkey.runs r USING (seq) WHERE r.id = $1", {run}),
            "1");
}

TEST_F(SqlHostile, AnothersKeyIsFreeAndNothingTellsOfIt) {
  Sql session = service("acme");
  for (const char* key : {"globex-open", "globex-done", "globex-failed"}) {
    const auto won =
        session.row("SELECT status, generation, attempt FROM latchkey.begin_run('f', '" + std::string(key) + "')");
    EXPECT_EQ(won, (std::vector<Value>{"won", "1", "1"})) << key;
  }
  EXPECT_EQ(session.one("SELECT changed FROM latchkey.transition('acme', 'e2', 'go', start => 'a')"), "t");
  // Nor does a tenant that another one holds up wait for it.
  Sql other = service("globex");
  other.run("BEGIN; SELECT latchkey.begin_run('f', 'both')");
  session.run("SET lock_timeout = '1 s'; SELECT latchkey.begin_run('f', 'both')");
}

TEST_F(SqlHostile, OnlyTheListedFunctionsCanBeCalled) {
  const Rows callable = admin.rows(
      "SELECT DISTINCT proname FROM pg_proc WHERE pronamespace = 'latchkey'::regnamespace AND "
      "(has_function_privilege('latchkey_tenant', oid, 'EXECUTE') "
      "OR has_function_privilege('latchkey_service', oid, 'EXECUTE')) ORDER BY 1");
  std::string names;
  for (const auto& row : callable) names += *row[0] + " ";
  EXPECT_EQ(names,
            "acknowledge_dlq_entry as_json as_text as_time begin_run caller complete_run current_tenant "
            "declare_transition enqueue fail_run "
            "heartbeat is_org_admin name_uuid reads_dead_letters sha1 status_name tenant_id transition ");
  Sql session = service("acme");
  EXPECT_EQ(refusal(session, "SELECT latchkey.lock_state(1)").state, "42501");
  EXPECT_EQ(refusal(session, "SELECT nextval('latchkey.fences')").state, "42501");
  EXPECT_EQ(session.one("SELECT latchkey.tenant_id('globex')"), foreign_[3]) << "what anybody can compute";
}

TEST_F(SqlHostile, MembersOfOthersAreNotToldOf) {
  Sql session = service("acme");
  EXPECT_EQ(session.one("SELECT latchkey.is_org_admin('acme-admin')"), "t");
  EXPECT_EQ(session.one("SELECT latchkey.is_org_admin('globex-admin')"), "f");
}

TEST_F(SqlHostile, ASessionsOwnNamesDoNotGetIntoTheFunctions) {
  const std::string role = bound_role("acme");
  admin.run("CREATE SCHEMA evil AUTHORIZATION " + role);
  Sql session = connect(role);
  session.run(
      "SET search_path = evil, pg_temp, pg_catalog; "
      "CREATE FUNCTION evil.sha256(bytea) RETURNS bytea LANGUAGE sql AS $$ SELECT '\\x00'::bytea $$; "
      "CREATE FUNCTION evil.convert_to(text, name) RETURNS bytea LANGUAGE sql AS $$ SELECT '\\x00'::bytea $$; "
      "CREATE FUNCTION evil.is_one(integer, integer) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'as "
      "%', current_user; END $$; "
      "CREATE OPERATOR evil.= (LEFTARG = integer, RIGHTARG = integer, FUNCTION = evil.is_one); "
      "CREATE TEMP TABLE keys (hash uuid); CREATE TEMP TABLE states (seq bigint)");
  EXPECT_EQ(session.one("SELECT status FROM latchkey.begin_run('f', 'k')"), "won");
  EXPECT_EQ(session.one("SELECT status FROM latchkey.enqueue('f', 'j')"), "enqueued");
  EXPECT_EQ(admin.one("SELECT count(*) FROM latchkey.keys WHERE hash = $1", {as_uuid(hash_key("acme", "f", "k"))}),
            "1");
  EXPECT_GT(std::stoi(*session.one("SELECT count(*) FROM latchkey.job_runs")), 3);
  session.run("RESET search_path");
  admin.run("DROP SCHEMA evil CASCADE");
}

TEST_F(SqlHostile, APooledConnectionForgetsItsTenant) {
  const std::string role = make_role("pool");
  admin.run("GRANT latchkey_service TO " + role);
  Sql session = connect(role);
  const auto tenants = [&] { return session.rows("SELECT DISTINCT tenant FROM latchkey.runs"); };
  for (const char* tenant : {"acme", "globex", "acme"}) {
    session.run("BEGIN; SET LOCAL app.current_tenant = '" + std::string(tenant) + "'");
    EXPECT_EQ(tenants(), (Rows{{tenant}}));
    session.run(tenant == std::string("globex") ? "ROLLBACK" : "COMMIT");
    EXPECT_EQ(tenants(), Rows{}) << "the setting is empty now, not unset";
  }
}

TEST_F(SqlHostile, ASuperusersUrlIsUnderThePoliciesOnceItTakesOnARole) {
  for (int time = 0; time < 2; ++time) {
    Sql session = connect();
    session.run("BEGIN; SET LOCAL ROLE latchkey_tenant; SET LOCAL app.current_tenant = 'acme'");
    EXPECT_GT(read_all(session), 20u);
    session.run("ROLLBACK; BEGIN; SET LOCAL ROLE latchkey_tenant");
    EXPECT_EQ(read_all(session), 0u);
    session.run("ROLLBACK; BEGIN; SET LOCAL ROLE latchkey_engine");
    EXPECT_EQ(session.one("SELECT count(DISTINCT tenant) FROM latchkey.runs"), "2");
    session.run("UPDATE latchkey.states SET flags = flags; ROLLBACK");
  }
}

TEST_F(SqlHostile, ConditionsAreEvaluatedOncePerQuery) {
  Sql session = connect(bound_role("acme"));
  std::string plan;
  for (const auto& row : session.rows("EXPLAIN (VERBOSE, COSTS OFF) SELECT * FROM latchkey.dead_letters"))
    plan += *row[0] + "\n";
  EXPECT_NE(plan.find("InitPlan 1"), plan.npos) << plan;
  EXPECT_NE(plan.find("InitPlan 2"), plan.npos) << plan;
  const std::size_t filter = plan.find("Filter:");
  EXPECT_EQ(plan.substr(filter, plan.find('\n', filter) - filter).find("current_tenant"), std::string::npos) << plan;
}

// --- people
// ---------------------------------------------------------------------------------------------------------------

TEST_F(SqlHostile, OrgAdminsReadTheirDeadLettersAndOnlyTheEngineWritesThem) {
  const auto letters = [](Sql& session) {
    return std::stoi(*session.one(
        "SELECT (SELECT count(*) FROM latchkey.dead_letter_queue) + (SELECT count(*) FROM latchkey.sync_errors)"));
  };
  Sql session = service("acme");
  EXPECT_EQ(letters(session), 2) << "the service itself";
  session.run("SET app.current_actor = 'acme-admin'");
  EXPECT_EQ(letters(session), 2);
  for (const char* actor : {"acme-viewer", "globex-admin", "nobody"}) {
    session.run("SET app.current_actor = '" + std::string(actor) + "'");
    EXPECT_EQ(letters(session), 0) << actor;
    EXPECT_GT(std::stoi(*session.one("SELECT count(*) FROM latchkey.job_runs")), 0) << actor;
  }
  Sql bound = connect(bound_role("acme", "service"));
  EXPECT_EQ(letters(bound), 0);
  for (const char* insert : {"dead_letters SELECT * FROM latchkey.dead_letters",
                             "dead_letter_members SELECT * FROM latchkey.dead_letter_members",
                             "dead_letter_queue (id) VALUES (gen_random_uuid())"})
    EXPECT_EQ(refusal(session, "INSERT INTO latchkey." + std::string(insert)).state, "42501") << insert;
}

TEST_F(SqlHostile, AViewerOnlyReads) {
  Sql viewer = connect(bound_role("acme", "viewer"));
  EXPECT_GT(std::stoi(*viewer.one("SELECT count(*) FROM latchkey.job_runs")), 0);
  for (const char* call :
       {"begin_run('f', 'k')", "enqueue('f')", "transition('acme', 'e', 'go')",
        "declare_transition('m', 'a', 'b', 'c')", "acknowledge_dlq_entry(gen_random_uuid(), 'acme-admin')"})
    EXPECT_EQ(refusal(viewer, "SELECT latchkey." + std::string(call)).detail, "FORBIDDEN") << call;
}

TEST_F(SqlHostile, AcknowledgingNeedsAnOrgAdminAndRecordsWhoAndWhen) {
  Sql session = service("acme");
  const std::string letter = *session.one("SELECT id FROM latchkey.dead_letter_queue");
  const auto acknowledge = [&](const std::string& actor) {
    return "SELECT acknowledged_by, acknowledged_at FROM latchkey.acknowledge_dlq_entry('" + letter + "', " + actor +
           ")";
  };
  for (const char* actor : {"'acme-viewer'", "'globex-admin'", "'nobody'", "''", "NULL"})
    EXPECT_EQ(refusal(session, acknowledge(actor)).state, "LK403") << actor;
  session.run("SET app.current_actor = 'acme-viewer'");
  EXPECT_EQ(refusal(session, acknowledge("'acme-admin'")).detail, "FORBIDDEN") << "in another person's name";
  Sql bound = connect(bound_role("acme", "service"));
  EXPECT_EQ(refusal(bound, acknowledge("'acme-admin'")).detail, "FORBIDDEN");
  EXPECT_EQ(admin.one("SELECT acknowledged_at FROM latchkey.dead_letters WHERE tenant = 'acme'"), std::nullopt);
  session.run("SET app.current_actor = 'acme-admin'");
  const auto first = session.row(acknowledge("'acme-admin'"));
  EXPECT_EQ(first[0], "acme-admin");
  admin.run("INSERT INTO latchkey.members VALUES ('acme', 'second-admin', 'org-admin')");
  session.run("SET app.current_actor = ''");
  EXPECT_EQ(session.row(acknowledge("'second-admin'")), first) << "the first stands";
  EXPECT_EQ(session.row("SELECT acknowledged_by_actor, acknowledged_at FROM latchkey.dead_letter_queue"), first);
  EXPECT_EQ(session.one("SELECT acknowledged_by = latchkey.name_uuid('acme-admin') FROM latchkey.dead_letter_queue"),
            "t");
  EXPECT_EQ(admin.one("SELECT acknowledged_at FROM latchkey.dead_letters WHERE tenant = 'globex'"), std::nullopt);
}

}  // namespace
}  // namespace latchkey
