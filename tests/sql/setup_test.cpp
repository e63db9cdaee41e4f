// Migrations by an owner that is no superuser, with and without CREATEROLE, and the self-test check_security().
#include "sql/sql_fixture.hpp"
#include "support/postgres/pg_cluster.hpp"

namespace latchkey {
namespace {

std::string url_of(const PgCluster& cluster, const std::string& role, const std::string& database) {
  std::string url = cluster.url(database);
  const std::size_t from = url.find("//") + 2;
  return url.replace(from, url.find('@') - from, role);
}

void expect_usable(Sql& owner) {
  EXPECT_EQ(owner.rows("BEGIN; SET LOCAL ROLE latchkey_engine; SELECT * FROM latchkey.check_security()"), Rows{});
  owner.run(
      "COMMIT; BEGIN; SET LOCAL ROLE latchkey_engine; INSERT INTO latchkey.batches VALUES (gen_random_uuid(), 1); "
      "COMMIT");
  for (const char* tenant : {"acme", "globex"}) {
    owner.run("BEGIN; SET LOCAL ROLE latchkey_tenant; SET LOCAL app.current_tenant = '" + std::string(tenant) + "'");
    EXPECT_EQ(owner.one("SELECT status FROM latchkey.begin_run('f', 'k')"), "won");
    EXPECT_EQ(owner.rows("SELECT DISTINCT tenant FROM latchkey.runs"), (Rows{{tenant}}));
    owner.run("COMMIT");
  }
  owner.run("BEGIN; SET LOCAL ROLE latchkey_tenant");
  EXPECT_EQ(owner.one("SELECT count(*) FROM latchkey.runs"), "0");
  owner.run("ROLLBACK");
}

// On a cluster of its own, as roles belong to the whole cluster, and here they do not exist yet.
TEST(SqlSetUp, OwnerNeedsCreateroleOrTheRoles) {
  PgCluster cluster;
  Sql super(cluster.url("postgres"));
  super.run("CREATE ROLE plain LOGIN; CREATE ROLE maker LOGIN CREATEROLE");
  for (const char* name : {"plain", "maker"}) super.run("CREATE DATABASE " + std::string(name) + " OWNER " + name);

  Sql plain(url_of(cluster, "plain", "plain"));
  const auto refused = [&] {
    try {
      apply_migrations(plain);
    } catch (const SqlError& error) {
      plain.run("ROLLBACK; DROP SCHEMA IF EXISTS latchkey CASCADE");
      return error;
    }
    ADD_FAILURE() << "was not refused";
    return SqlError("", "", "");
  };
  SqlError error = refused();
  EXPECT_EQ(error.state, "42501");
  EXPECT_NE(std::string(error.what()).find("plain may not make roles (it lacks CREATEROLE)"), std::string::npos)
      << error.what();
  EXPECT_NE(std::string(error.what()).find("GRANT latchkey_engine, latchkey_tenant, latchkey_service TO plain"),
            std::string::npos)
      << error.what();

  Sql maker(url_of(cluster, "maker", "maker"));
  apply_migrations(maker);
  expect_usable(maker);

  error = refused();  // the roles exist, but plain is no member
  EXPECT_EQ(error.state, "42501");
  EXPECT_NE(std::string(error.what()).find("plain is not a member of the role latchkey_engine"), std::string::npos)
      << error.what();
  super.run("GRANT latchkey_engine, latchkey_tenant, latchkey_service TO plain");
  apply_migrations(plain);
  expect_usable(plain);
}

class SqlSelfTest : public SqlTest {
 protected:
  std::string problems_after(const std::string& fault) {
    admin.run("BEGIN; " + fault);
    std::string found;
    for (const auto& row : admin.rows("SELECT * FROM latchkey.check_security()")) found += *row[0] + "; ";
    admin.run("ROLLBACK");
    return found;
  }
};

// covers: C6
TEST_F(SqlSelfTest, FindsEveryFault) {
  EXPECT_EQ(problems_after(""), "");
  EXPECT_EQ(problems_after("ALTER TABLE latchkey.runs NO FORCE ROW LEVEL SECURITY"),
            "table latchkey.runs does not force row-level security; ");
  EXPECT_EQ(problems_after("ALTER TABLE latchkey.keys DISABLE ROW LEVEL SECURITY"),
            "table latchkey.keys does not force row-level security; ");
  EXPECT_EQ(problems_after("DROP POLICY engine ON latchkey.runs"),
            "table latchkey.runs has no policy for the engine; ");
  EXPECT_EQ(problems_after("CREATE TABLE latchkey.new_one ()"),
            "table latchkey.new_one does not force row-level security; table latchkey.new_one has no policy for the "
            "engine; ");
  // Policies: one more, and each of ours changed.
  const auto changed = [](const char* table, const char* policy) {
    return std::string("table latchkey.") + table + " has the policy " + policy +
           ", which is not Latchkey's or was changed; ";
  };
  for (const char* options :
       {"USING (true)", "AS RESTRICTIVE USING (false)", "FOR SELECT TO latchkey_tenant USING (true)",
        "FOR INSERT TO PUBLIC WITH CHECK (true)", "TO latchkey_engine USING (true)"})
    EXPECT_EQ(problems_after("CREATE POLICY added ON latchkey.runs " + std::string(options)), changed("runs", "added"));
  EXPECT_EQ(problems_after("CREATE POLICY runner ON latchkey.runs USING (true)"), changed("runs", "runner"));
  EXPECT_EQ(problems_after("CREATE POLICY tenant ON latchkey.tokens FOR SELECT USING (true)"),
            changed("tokens", "tenant"));
  EXPECT_EQ(problems_after("ALTER POLICY tenant ON latchkey.runs USING (true)"), changed("runs", "tenant"));
  EXPECT_EQ(problems_after("ALTER POLICY tenant ON latchkey.runs USING (tenant = (SELECT latchkey.current_tenant()) OR "
                           "function = 'f')"),
            changed("runs", "tenant"));
  EXPECT_EQ(problems_after("ALTER POLICY tenant ON latchkey.dead_letters USING (tenant = (SELECT "
                           "latchkey.current_tenant()))"),
            changed("dead_letters", "tenant"));
  EXPECT_EQ(problems_after("ALTER POLICY tenant ON latchkey.runs TO latchkey_tenant"), changed("runs", "tenant"));
  EXPECT_EQ(problems_after("DROP POLICY tenant ON latchkey.runs; CREATE POLICY tenant ON latchkey.runs USING (tenant = "
                           "(SELECT latchkey.current_tenant()))"),
            changed("runs", "tenant"))
      << "for writes too";
  EXPECT_EQ(problems_after("ALTER POLICY engine ON latchkey.runs USING (false)"), changed("runs", "engine"));
  EXPECT_EQ(problems_after("ALTER POLICY engine ON latchkey.runs WITH CHECK (false)"), changed("runs", "engine"));
  EXPECT_EQ(problems_after("DROP POLICY tenant ON latchkey.runs"),
            "table latchkey.runs is read by tenants and has no policy for them; ");
  // Rights on tables, views, columns, sequences and the schema.
  for (const char* role : {"latchkey_tenant", "latchkey_service"}) {
    const auto right = [&](const std::string& privilege, const std::string& on) {
      return "role " + std::string(role) + " has the right to " + privilege + " on latchkey." + on + "; ";
    };
    const auto after_grant = [&](const std::string& what) { return problems_after("GRANT " + what + " TO " + role); };
    for (const char* privilege : {"INSERT", "UPDATE", "DELETE", "TRUNCATE", "TRIGGER", "REFERENCES"})
      EXPECT_EQ(after_grant(std::string(privilege) + " ON latchkey.runs"), right(privilege, "runs"));
    EXPECT_EQ(after_grant("UPDATE (state) ON latchkey.entities"), right("UPDATE", "entities"));
    EXPECT_EQ(after_grant("INSERT ON latchkey.dead_letter_queue"), right("INSERT", "dead_letter_queue"));
    EXPECT_EQ(after_grant("SELECT ON latchkey.tokens"),
              "table latchkey.tokens is read by tenants and has no policy for them; ");
    EXPECT_EQ(after_grant("SELECT (secret_hash) ON latchkey.tokens"),
              "table latchkey.tokens is read by tenants and has no policy for them; ");
    EXPECT_EQ(after_grant("USAGE ON latchkey.fences"), right("USAGE", "fences"));
    EXPECT_EQ(after_grant("SELECT ON latchkey.clock"), right("SELECT", "clock"));
    EXPECT_EQ(after_grant("CREATE ON SCHEMA latchkey"),
              "role " + std::string(role) + " may make things in the schema latchkey; ");
    EXPECT_EQ(after_grant("EXECUTE ON FUNCTION latchkey.lock_state(bigint)"),
              "function latchkey.lock_state(bigint) may be called by " + std::string(role) + "; ");
  }
  EXPECT_EQ(problems_after("GRANT TRUNCATE ON latchkey.runs TO latchkey_engine"),
            "role latchkey_engine has the right to TRUNCATE on latchkey.runs; ");
  EXPECT_EQ(problems_after("GRANT CREATE ON SCHEMA latchkey TO PUBLIC"),
            "role PUBLIC may make things in the schema latchkey; ");
  for (const char* what : {"INSERT ON latchkey.keys", "UPDATE (seq) ON latchkey.keys", "SELECT ON latchkey.keys"})
    EXPECT_EQ(problems_after("GRANT " + std::string(what) + " TO PUBLIC"),
              "latchkey.keys may be read or written by everybody; ");
  const std::string reader = make_role("reader");
  EXPECT_EQ(problems_after("GRANT SELECT ON ALL TABLES IN SCHEMA latchkey TO " + reader), "") << "for backups";
  EXPECT_EQ(problems_after("GRANT DELETE ON latchkey.keys TO " + reader),
            "role " + reader + " has the right to DELETE on latchkey.keys; ");

  EXPECT_EQ(problems_after("ALTER VIEW latchkey.job_runs RESET (security_invoker)"),
            "view latchkey.job_runs is not security_invoker; ");
  EXPECT_EQ(problems_after("ALTER VIEW latchkey.job_runs SET (security_invoker = off)"),
            "view latchkey.job_runs is not security_invoker; ");
  EXPECT_EQ(problems_after("CREATE MATERIALIZED VIEW latchkey.m AS SELECT 1 AS x"),
            "latchkey.m is a materialized or foreign table: no policy guards it; ");
  EXPECT_EQ(problems_after("GRANT SELECT ON latchkey.tokens TO PUBLIC"),
            "latchkey.tokens may be read or written by everybody; ");
  EXPECT_EQ(problems_after("ALTER FUNCTION latchkey.caller() RESET search_path"),
            "function latchkey.caller() runs as its owner without a fixed search_path; ");
  EXPECT_EQ(problems_after("ALTER FUNCTION latchkey.caller() OWNER TO latchkey"),
            "function latchkey.caller() runs as latchkey, not as latchkey_engine; ");
  EXPECT_EQ(problems_after("GRANT EXECUTE ON FUNCTION latchkey.store_now() TO PUBLIC"),
            "function latchkey.store_now() may be called by everybody; ");
  EXPECT_EQ(problems_after("CREATE FUNCTION latchkey.f() RETURNS int LANGUAGE sql AS 'SELECT 1'"),
            "function latchkey.f() may be called by everybody; ");
  EXPECT_EQ(problems_after("ALTER ROLE latchkey_engine BYPASSRLS"),
            "role latchkey_engine is a superuser or has BYPASSRLS; ");
  EXPECT_EQ(problems_after("ALTER ROLE latchkey_engine SUPERUSER").find("role latchkey_engine is a superuser"), 0u);
  EXPECT_EQ(problems_after("GRANT latchkey_engine TO latchkey_service"),
            "role latchkey_service is a member of latchkey_engine; ");
  const std::string role = bound_role("acme");
  EXPECT_EQ(problems_after("GRANT latchkey_engine TO " + role),
            "role " + role + " is bound to a tenant and a member of latchkey_engine; ");
  EXPECT_EQ(problems_after("ALTER ROLE " + role + " BYPASSRLS"),
            "role " + role + " is bound to a tenant and has BYPASSRLS; ");
  EXPECT_EQ(problems_after("GRANT SELECT ON latchkey.fences TO " + role),
            "role " + role + " has the right to SELECT on latchkey.fences; ");
  // Only its owner may read the ledger of migrations. With a further reader it needs policies as any other table.
  EXPECT_EQ(problems_after("CREATE TABLE latchkey.migrations ()"), "");
  EXPECT_NE(
      problems_after("CREATE TABLE latchkey.migrations (); GRANT SELECT ON latchkey.migrations TO latchkey_tenant"),
      "");
}

}  // namespace
}  // namespace latchkey
