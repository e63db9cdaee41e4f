// Locks that any tenant can take do not delay a server.
#include "conformance/store_test.hpp"
#include "support/postgres/pg_stores.hpp"

namespace latchkey {
namespace {

class SqlLatches : public PostgresStores {
 protected:
  PgClient admin{url()};
};

TEST_F(SqlLatches, TenantsLocksDoNotBlockAPurge) {
  const auto store = open(url(), {.writers = 1, .patience = 5s});
  Verbs verbs(*store);
  admin.execute(
      "DROP ROLE IF EXISTS grasping; CREATE ROLE grasping LOGIN; GRANT latchkey_tenant TO grasping; INSERT INTO "
      "latchkey.tenant_roles VALUES ('grasping', 'acme')");
  PgClient tenant(std::string(url()).replace(url().find("latchkey@"), 8, "grasping"));
  // Every table, view and sequence, by its number and by its name, as servers and migrations have named theirs.
  tenant.execute("SET search_path = pg_catalog; BEGIN");
  EXPECT_GT(
      std::stoi(tenant.ask_one(
          "SELECT count(*) FROM (SELECT pg_advisory_xact_lock(a.space, b.object) FROM (VALUES (0), (1), (7420)) a "
          "(space), (SELECT c.oid::integer FROM pg_class c WHERE c.relnamespace = "
          "'latchkey'::regnamespace UNION SELECT hashtext('latchkey.' || c.relname) FROM pg_class c WHERE "
          "c.relnamespace = 'latchkey'::regnamespace UNION SELECT hashtext(w) FROM unnest(ARRAY['latchkey', "
          "'latchkey.servers', 'latchkey.purge', 'purge', 'acme']) w UNION SELECT generate_series(0, 50)) b "
          "(object)) taken")),
      300);
  for (const char* table : {"latches", "outcomes", "runs", "states", "keys"})
    for (const char* how : {"SELECT 1 FROM latchkey.{} FOR UPDATE", "SELECT 1 FROM latchkey.{} FOR KEY SHARE",
                            "LOCK TABLE latchkey.{} IN SHARE MODE", "LOCK TABLE latchkey.{} IN ROW EXCLUSIVE MODE"}) {
      std::string statement = std::string("SAVEPOINT s; ") + how;
      statement.replace(statement.find("{}"), 2, table);
      EXPECT_THROW(tenant.execute(statement), std::runtime_error) << statement;
      tenant.execute("ROLLBACK TO s");
    }

  std::vector<EnqueueRequest> jobs(20);
  for (EnqueueRequest& job : jobs) job.tenant = "acme", job.function = "f", job.window = 0ms;
  verbs.enqueue_all(std::move(jobs));
  std::vector<SettleRequest> endings;
  for (const Taken& one : verbs.take({.functions = {"f"}, .limit = 20, .session = id_of(5), .lease = 1min}))
    endings.push_back({"acme", one.run.id(), one.fence, Complete{"r", {}}});
  ASSERT_EQ(verbs.settle_all(std::move(endings)).size(), 20u);
  EXPECT_NE(admin.ask_one("SELECT count(*) FROM latchkey.outcomes"), "0");
  std::uint32_t purged = 0;
  for (int tries = 0; purged < 20 && tries < 20; ++tries) purged += verbs.purge({.done = 0ms, .failed = 0ms}).changed;
  EXPECT_EQ(purged, 20u);
  EXPECT_EQ(admin.ask_one("SELECT count(*) FROM latchkey.outcomes"), "0");
  tenant.execute("ROLLBACK");
  admin.execute("DROP OWNED BY grasping; DROP ROLE grasping");
}

}  // namespace
}  // namespace latchkey
