// Roles for dashboards that read one tenant or all of them, and the rights with which a tenant's role could raise its
// own privileges.
#include "conformance/store_test.hpp"
#include "support/postgres/pg_stores.hpp"

namespace latchkey {
namespace {

class SqlReaders : public PostgresStores {
 protected:
  SqlReaders() {
    store_ = open(url());
    Verbs verbs(*store_);
    for (const char* tenant : {"acme", "globex"}) {
      const Won won = std::get<Won>(verbs.claim(a_claim("k", tenant)));
      verbs.settle({tenant, won.run.id(), won.fence, Complete{"{}", {}}});
      const Won failed = std::get<Won>(verbs.claim(a_claim("f", tenant)));
      verbs.settle({tenant, failed.run.id(), failed.fence, permanent()});
    }
  }
  ~SqlReaders() override {
    for (const std::string& role : roles_) admin.execute("DROP OWNED BY " + role + "; DROP ROLE " + role);
  }
  std::string make_role(const std::string& options = "") {
    static int made = 0;
    roles_.push_back("reader_" + std::to_string(++made));
    admin.execute("CREATE ROLE " + roles_.back() + " LOGIN " + options);
    return roles_.back();
  }
  PgClient as(const std::string& role) {
    return PgClient(std::string(url()).replace(url().find("latchkey@"), 8, role));
  }
  std::vector<std::string> problems() { return admin.ask("SELECT problem FROM latchkey.check_security() ORDER BY 1"); }
  // The number of tenants whose rows the reader sees in the view.
  static std::string tenants_in(PgClient& reader, const std::string& view, const std::string& column) {
    return reader.ask_one("SELECT count(DISTINCT " + column + ") FROM latchkey." + view);
  }

  std::unique_ptr<PostgresStore> store_;
  PgClient admin{url()};
  std::vector<std::string> roles_;
};

using Problems = std::vector<std::string>;

constexpr std::pair<const char*, const char*> kViews[] = {{"job_runs", "tenant_id"},
                                                          {"sync_run_log", "org_id"},
                                                          {"dead_letter_queue", "org_id"},
                                                          {"sync_errors", "tenant_id"},
                                                          {"geoprocessing_idempotency", "tenant_id"}};

void expect_reads_only(PgClient& reader) {
  for (const char* write :
       {"SELECT latchkey.begin_run('f', 'mine')", "SELECT latchkey.enqueue('f')", "DELETE FROM latchkey.runs",
        "UPDATE latchkey.states SET flags = 0", "INSERT INTO latchkey.members VALUES ('acme', 'me', 'admin')"})
    EXPECT_THROW(reader.execute(write), std::runtime_error) << write;
}

TEST_F(SqlReaders, ADashboardOfOneTenant) {
  const std::string grafana = make_role();
  admin.execute("GRANT latchkey_tenant TO " + grafana + "; INSERT INTO latchkey.tenant_roles (role, tenant, acts_as) " +
                "VALUES ('" + grafana + "', 'acme', 'viewer')");
  PgClient reader = as(grafana);
  for (const auto& [view, column] : kViews)
    EXPECT_EQ(tenants_in(reader, view, column),
              std::string(view).find("_run") != std::string::npos || view == std::string("geoprocessing_idempotency")
                  ? "1"
                  : "0")
        << view << ": viewers read no dead letters";
  expect_reads_only(reader);
  EXPECT_EQ(problems(), Problems{});
  store_.reset();
  open(url());  // a server starts
}

TEST_F(SqlReaders, ADashboardOfAllTenants) {
  const std::string grafana = make_role("BYPASSRLS");
  admin.execute("GRANT latchkey_tenant TO " + grafana);
  PgClient reader = as(grafana);
  for (const auto& [view, column] : kViews) EXPECT_EQ(tenants_in(reader, view, column), "2") << view;
  expect_reads_only(reader);
  EXPECT_THROW(reader.execute("SELECT * FROM latchkey.tokens"), std::runtime_error);
  EXPECT_EQ(problems(), Problems{});
  store_.reset();
  open(url());
}

// SELECT alone is for backups, by roles with BYPASSRLS. Other roles cannot call the functions of the policies.
TEST_F(SqlReaders, SelectAloneReadsTablesWithBypassrlsOnly) {
  const std::string plain = make_role(), above = make_role("BYPASSRLS");
  for (const std::string& role : {plain, above})
    admin.execute("GRANT USAGE ON SCHEMA latchkey TO " + role + "; GRANT SELECT ON ALL TABLES IN SCHEMA latchkey TO " +
                  role);
  EXPECT_THROW(as(plain).execute("SELECT FROM latchkey.runs"), std::runtime_error);
  EXPECT_EQ(as(above).ask_one("SELECT count(DISTINCT tenant) FROM latchkey.runs"), "2");
  EXPECT_EQ(problems(), Problems{});
}

// With CREATEROLE (PostgreSQL 15), or with ADMIN OPTION on one of the three roles, a role can make itself a member.
TEST_F(SqlReaders, BoundRoleThatCanGainRightsIsReported) {
  const std::string bound = make_role(), power = make_role("CREATEROLE BYPASSRLS");
  const auto after = [&](const std::string& fault) {
    admin.execute("BEGIN; " + fault);
    auto found = problems();
    admin.execute("ROLLBACK");
    return found;
  };
  admin.execute("GRANT latchkey_tenant TO " + bound + "; INSERT INTO latchkey.tenant_roles VALUES ('" + bound +
                "', 'acme')");
  EXPECT_EQ(problems(), Problems{}) << "an unbound role may have any right";
  const std::string problem = "role " + bound + " is bound to a tenant and ";
  EXPECT_EQ(after("ALTER ROLE " + bound + " CREATEROLE"), Problems{problem + "has CREATEROLE"});
  EXPECT_EQ(after("ALTER ROLE " + bound + " BYPASSRLS"), Problems{problem + "has BYPASSRLS"});
  EXPECT_EQ(after("GRANT " + power + " TO " + bound),
            (Problems{problem + "has BYPASSRLS", problem + "has CREATEROLE"}));
  EXPECT_EQ(after("GRANT latchkey TO " + bound).back(), problem + "has SUPERUSER");
  for (const char* role : {"latchkey_engine", "latchkey_tenant", "latchkey_service"}) {
    const auto found = after("GRANT " + std::string(role) + " TO " + bound + " WITH ADMIN OPTION");
    EXPECT_EQ(found.back(), problem + "may grant " + role);
    EXPECT_EQ(after("ALTER ROLE " + std::string(role) + " LOGIN"),
              Problems{"role " + std::string(role) + " can log in"});
  }
}

TEST_F(SqlReaders, EveryVisibleObjectHasAComment) {
  EXPECT_EQ(
      admin.ask("SELECT c.oid::regclass::text FROM pg_class c WHERE c.relnamespace = 'latchkey'::regnamespace AND "
                "c.relkind IN ('r', 'v') AND c.relname <> 'migrations' AND obj_description(c.oid, 'pg_class') IS "
                "NULL UNION ALL SELECT p.oid::regprocedure::text FROM pg_proc p WHERE p.pronamespace = "
                "'latchkey'::regnamespace AND obj_description(p.oid, 'pg_proc') IS NULL AND "
                "has_function_privilege('latchkey_tenant', p.oid, 'EXECUTE')"),
      std::vector<std::string>{});
}

// In sync_errors and in job_runs.
TEST_F(SqlReaders, AFailedRunWithoutAKeyShowsItsId) {
  admin.execute(
      "SET app.current_tenant = 'acme'; DO $$ DECLARE b record; BEGIN SELECT * INTO b FROM latchkey.begin_run('g', "
      "guard => 'none', retries => 0); PERFORM latchkey.fail_run(b.run, b.fence, 'no'); END $$");
  EXPECT_EQ(admin.ask("SELECT e.error_details ->> 'lock_key' = j.lock_key AND (j.lock_key = j.id::text) = "
                      "(j.function_name = 'g') FROM latchkey.sync_errors e JOIN latchkey.job_runs j ON j.id = "
                      "e.source_entity_id"),
            (std::vector<std::string>{"t", "t", "t"}));
}

// The views' time conversion is inlined into the query plan, so that no function is called for each row.
TEST_F(SqlReaders, TimesAreInlined) {
  std::string plan;
  for (const std::string& line : admin.ask("EXPLAIN (VERBOSE, COSTS OFF) SELECT created_at FROM latchkey.job_runs"))
    plan += line;
  EXPECT_NE(plan.find("to_timestamp"), plan.npos) << plan;
  EXPECT_EQ(plan.find("as_time"), plan.npos) << plan;
}

}  // namespace
}  // namespace latchkey
