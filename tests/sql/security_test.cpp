// A hostile tenant in the database: every table, every view and every function, with every trick that a session has.
#include <gmock/gmock.h>

#include <set>

#include "sql/sql_hostile.hpp"
#include "sql/sql_runs.hpp"
#include "support/postgres/pg_bouncer.hpp"
#include "support/postgres/pg_server.hpp"
#include "support/sample_runs.hpp"

namespace latchkey {
namespace {

TEST_F(SqlHostile, EveryTableHasRowsOfBothTenants) {
  const std::set<std::string> without_tenant{"latchkey.place", "latchkey.batches", "latchkey.latches",
                                             "latchkey.settlements"};
  for (const std::string& name : relations()) {
    if (without_tenant.contains(name)) continue;
    // By its name, or by its UUID in the seeds' columns.
    const Rows column = admin.rows(
        "SELECT attname FROM pg_attribute WHERE attrelid = $1::text::regclass AND attname = ANY "
        "('{tenant,tenants,tenant_id,"
        "org_id}'::text[] || CASE $1::text WHEN 'latchkey.tenants' THEN 'name' END)",
        {name});
    ASSERT_FALSE(column.empty()) << name << ": whose are its rows?";
    for (const char* tenant : {"acme", "globex"})
      EXPECT_NE(admin.one("SELECT count(*) FROM " + name + " t WHERE t." + *column[0][0] +
                              "::text IN ($1, latchkey.name_uuid($1)::text)",
                          {tenant}),
                "0")
          << name << " is not tried by these tests: it has no row of " << tenant;
  }
}

// covers: C6
TEST_F(SqlHostile, TenantSeesItsOwnRowsOnly) {
  Sql believed = service("acme");
  EXPECT_GT(read_all(believed), 20u);
  expect_writes_nothing(believed);
  Sql bound = connect(bound_role("acme"));
  EXPECT_GT(read_all(bound), 20u);
  expect_writes_nothing(bound);
}

// No right is granted on any column. A policy alone would still allow EXPLAIN and its estimates.
TEST_F(SqlHostile, EngineTablesAreDenied) {
  Sql believed = service("acme"), bound = connect(bound_role("acme"));
  for (const char* table : {"keys", "settlements", "tokens", "batches", "place", "latches", "tenant_roles"}) {
    const std::string name = std::string("latchkey.") + table;
    std::vector<std::string> tries{"SELECT FROM " + name, "SELECT count(*) FROM " + name, "EXPLAIN SELECT FROM " + name,
                                   "TABLE " + name, "COPY " + name + " TO STDOUT"};
    for (const auto& column : admin.rows("SELECT quote_ident(attname) FROM pg_attribute WHERE attrelid = "
                                         "$1::text::regclass AND attnum > 0 AND NOT attisdropped",
                                         {name}))
      tries.push_back("SELECT " + *column[0] + " FROM " + name);
    for (Sql* session : {&believed, &bound})
      for (const std::string& one : tries) EXPECT_EQ(refusal(*session, one).state, "42501") << one;
  }
}

TEST_F(SqlHostile, SessionWithoutTenantSeesNothing) {
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

// The tenant is unset, empty, or set by a role whose setting is ignored.
TEST_F(SqlHostile, FunctionsNeedATenant) {
  const std::string unset = make_role("unset"), liar = make_role("liar");
  admin.run("GRANT latchkey_service TO " + unset + "; GRANT latchkey_tenant TO " + liar);
  const std::string before = everything();
  const auto expect_nothing = [&](Sql& session, const std::string& who) {
    for (const std::string& call : writing_calls()) {
      const SqlError refused = refusal(session, "SELECT latchkey." + call);
      EXPECT_EQ(refused.state, "LK403") << who << ": " << call;
      EXPECT_EQ(refused.detail, "FORBIDDEN") << who << ": " << call;
      EXPECT_FALSE(is_foreign(refused.what())) << refused.what();
    }
    EXPECT_EQ(session.row("SELECT c.tenant, c.acts_as, latchkey.current_tenant(), latchkey.is_org_admin('acme-admin'), "
                          "latchkey.reads_dead_letters() FROM latchkey.caller() c"),
              (std::vector<Value>{std::nullopt, std::nullopt, std::nullopt, "f", "f"}))
        << who;
  };
  Sql session = connect(unset);
  expect_nothing(session, "unset");
  session.run("SET app.current_tenant = ''");
  expect_nothing(session, "empty");
  session.run("SET app.current_actor = 'acme-admin'");
  expect_nothing(session, "an actor without a tenant");
  Sql other = connect(liar);
  other.run("SET app.current_tenant = 'acme'; SET app.current_actor = 'acme-admin'");
  expect_nothing(other, "setting ignored");
  EXPECT_EQ(everything(), before);
}

// Fences, counters, the clock's mark and the purge's position belong to the engine.
TEST_F(SqlHostile, SequencesAreDenied) {
  const Rows sequences =
      admin.rows("SELECT oid::regclass FROM pg_class WHERE relnamespace = 'latchkey'::regnamespace AND relkind = 'S'");
  EXPECT_EQ(sequences.size(), 4u);
  Sql believed = service("acme"), bound = connect(bound_role("acme"));
  for (Sql* session : {&believed, &bound}) {
    for (const auto& row : sequences)
      for (const char* trick :
           {"SELECT last_value FROM {}", "SELECT nextval('{}')", "SELECT setval('{}', 1)", "SELECT currval('{}')",
            "SELECT pg_sequence_last_value('{}')", "ALTER SEQUENCE {} RESTART", "SELECT * FROM {} FOR UPDATE"}) {
        std::string statement = trick;
        statement.replace(statement.find("{}"), 2, *row[0]);
        const SqlError refused = refusal(*session, statement);
        EXPECT_TRUE(refused.state == "42501" || refused.state == "42809") << statement << ": " << refused.what();
      }
    EXPECT_EQ(session->rows("SELECT last_value FROM pg_sequences WHERE schemaname = 'latchkey' AND last_value IS NOT "
                            "NULL"),
              Rows{});
  }
}

TEST_F(SqlHostile, TenantSettingIsForServicesOnly) {
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

TEST_F(SqlHostile, BoundRoleCannotChangeItsTenant) {
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
  // Its runs are acme's, whatever tenant it sets.
  session.run("RESET row_security; SET app.current_tenant = 'globex'");
  session.run("SELECT latchkey.begin_run('f', 'mine')");
  EXPECT_EQ(admin.one("SELECT tenant FROM latchkey.runs WHERE convert_from(key, 'UTF8') = 'mine'"), "acme");
}

TEST_F(SqlHostile, UserFunctionsSeeNoForeignRows) {
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
  // A foreign state machine looks like an unknown one.
  for (const char* rest :
       {"'e', 'go')", "'e', 'no such')", "'none', 'go', start => 'a')", "'e', 'go', expected => 'a')"}) {
    const auto with = [&](const std::string& machine) {
      const SqlError error = refusal(session, "SELECT latchkey.transition('" + machine + "', " + rest);
      return error.state + " " + error.detail + " " + error.what();
    };
    EXPECT_EQ(with("globex"), with("unused"));
    EXPECT_THAT(with("globex"), ::testing::HasSubstr(" NOT_FOUND ")) << rest;
  }
  EXPECT_EQ(admin.one("SELECT status FROM latchkey.states s JOIN latchkey.runs r USING (seq) WHERE r.id = $1", {run}),
            "1");
}

constexpr const char* kCall = "00000000-0000-4000-8000-00000000ca11";

TEST_F(SqlHostile, ForeignKeysAreFreeAndInvisible) {
  Sql session = service("acme");
  for (const char* key : {"globex-open", "globex-done", "globex-failed"}) {
    const auto won =
        session.row("SELECT status, generation, attempt FROM latchkey.begin_run('f', '" + std::string(key) + "')");
    EXPECT_EQ(won, (std::vector<Value>{"won", "1", "1"})) << key;
  }
  // Two tenants enqueue the same job with the same call_id: each gets its own run.
  Sql neighbour = service("globex");
  std::set<std::string> runs;
  for (Sql* one : {&neighbour, &session}) {
    const std::string job =
        "SELECT run, duplicate FROM latchkey.enqueue('g', 'job', call_id => '" + std::string(kCall) + "')";
    const auto made = one->row(job);
    EXPECT_EQ(made[1], "f");
    EXPECT_EQ(one->row(job), made) << "the same call gets the same reply";
    runs.insert(*made[0]);
  }
  EXPECT_EQ(runs.size(), 2u);
  EXPECT_EQ(session.one("SELECT changed FROM latchkey.transition('acme', 'e2', 'go', start => 'a')"), "t");
  // A tenant does not wait for another tenant's open transaction.
  Sql other = service("globex");
  other.run("BEGIN; SELECT latchkey.begin_run('f', 'both')");
  session.run("SET lock_timeout = '1 s'; SELECT latchkey.begin_run('f', 'both')");
}

TEST_F(SqlHostile, TransitionsOfTwoTenantsAreSeparate) {
  Sql own = service("acme"), other = service("globex");
  own.run(
      "SELECT latchkey.declare_transition('both', 'a', 'go', 'b'), latchkey.declare_transition('both', 'b', 'on', "
      "'c')");
  other.run("SELECT latchkey.declare_transition('both', 'a', 'go', 'z')");
  const std::string go =
      "SELECT state, changed, current_state FROM latchkey.transition('both', 'e', 'go', start => "
      "'a', call_id => '" +
      std::string(kCall) + "')";
  EXPECT_EQ(other.row(go), (std::vector<Value>{"z", "t", "z"}));
  EXPECT_EQ(own.row(go), (std::vector<Value>{"b", "t", "b"})) << "a foreign call is not a repeat";
  EXPECT_EQ(own.one("SELECT state FROM latchkey.transition('both', 'e', 'on')"), "c");
  EXPECT_EQ(own.row(go), (std::vector<Value>{"b", "f", "c"}));
  EXPECT_EQ(other.row(go), (std::vector<Value>{"z", "f", "z"})) << "no other tenant changed the entity";
  EXPECT_EQ(refusal(other, "SELECT latchkey.transition('both', 'e', 'on')").detail,
            refusal(other, "SELECT latchkey.transition('both', 'e', 'no such')").detail)
      << "a transition that only another tenant declared";
}

// EXPLAIN estimates from the statistics of all rows, for every reader.
TEST_F(SqlHostile, EstimatesDoNotRevealForeignNames) {
  service("globex").run("SELECT latchkey.enqueue('hidden') FROM generate_series(1, 300)");
  admin.run("ANALYZE");
  EXPECT_EQ(
      admin.one("SELECT string_agg(DISTINCT c.relname || '.' || a.attname, ' ') FROM pg_statistic s JOIN pg_class c "
                "ON c.oid = s.starelid JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = s.staattnum WHERE "
                "c.relnamespace = 'latchkey'::regnamespace AND c.relrowsecurity AND c.relname <> 'migrations' AND "
                "a.atttypid IN ('text'::regtype, 'bytea'::regtype, 'uuid'::regtype)"),
      std::nullopt);
  Sql session = service("acme");
  const auto estimate = [&](const std::string& condition) {
    const std::string plan =
        *session.one("EXPLAIN (FORMAT JSON) SELECT FROM latchkey.runs WHERE " + condition + " OFFSET 0");
    return plan.substr(plan.find("\"Plan Rows\""), 24);
  };
  EXPECT_EQ(estimate("function = 'hidden'"), estimate("function = 'unused'"));
  EXPECT_EQ(estimate("tenant = 'globex'"), estimate("tenant = 'unused'"));
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
            "heartbeat is_latest is_org_admin name_uuid reads_dead_letters sha1 status_name tenant_id transition ");
  Sql session = service("acme");
  EXPECT_EQ(refusal(session, "SELECT latchkey.lock_state(1)").state, "42501");
  EXPECT_EQ(refusal(session, "SELECT nextval('latchkey.fences')").state, "42501");
  EXPECT_EQ(session.one("SELECT latchkey.tenant_id('globex')"), foreign_[3]) << "a public computation";
}

TEST_F(SqlHostile, ForeignMembersAreNotRevealed) {
  Sql session = service("acme");
  EXPECT_EQ(session.one("SELECT latchkey.is_org_admin('acme-admin')"), "t");
  EXPECT_EQ(session.one("SELECT latchkey.is_org_admin('globex-admin')"), "f");
}

TEST_F(SqlHostile, SearchPathDoesNotReachTheFunctions) {
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

// Two programs share one connection to the server, transaction by transaction.
TEST_F(SqlHostile, APooledConnectionForgetsItsTenant) {
  const std::string role = make_role("pool");
  admin.run("GRANT latchkey_service TO " + role);
  const PgBouncer bouncer(PgServer::instance().port(), 1, {"latchkey", role});
  const std::string database = url_.substr(url_.rfind('/') + 1);
  Sql one(bouncer.url(database, role)), two(bouncer.url(database, role));
  const auto tenants = [](Sql& session) { return session.rows("SELECT DISTINCT tenant FROM latchkey.runs"); };
  const auto backend = [](Sql& session) { return session.one("SELECT pg_backend_pid()"); };
  EXPECT_EQ(backend(one), backend(two));
  for (const char* tenant : {"acme", "globex", "acme"}) {
    one.run("BEGIN; SET LOCAL app.current_tenant = '" + std::string(tenant) + "'; SET LOCAL app.current_actor = '" +
            tenant + "-viewer'");
    EXPECT_EQ(tenants(one), (Rows{{tenant}}));
    one.run(tenant == std::string("globex") ? "ROLLBACK" : "COMMIT");
    for (Sql* session : {&two, &one}) {
      EXPECT_EQ(tenants(*session), Rows{}) << "the setting is empty now, not unset";
      EXPECT_EQ(refusal(*session, "SELECT latchkey.begin_run('f', 'k')").state, "LK403");
    }
    two.run("BEGIN; SET LOCAL app.current_tenant = 'acme'; SELECT latchkey.begin_run('f', 'k'); ROLLBACK");
  }
  EXPECT_EQ(backend(one), backend(two));
}

TEST_F(SqlHostile, PoliciesApplyToASuperuserWithARole) {
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

}  // namespace
}  // namespace latchkey
