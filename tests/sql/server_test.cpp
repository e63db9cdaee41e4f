// A server and row-level security: it does not start on a database that does not isolate tenants, and it works with
// every documented kind of URL.
#include <thread>

#include "conformance/store_test.hpp"
#include "support/postgres/pg_bouncer.hpp"
#include "support/postgres/pg_stores.hpp"
#include "support/wait_until.hpp"

namespace latchkey {
namespace {

class SqlServer : public PostgresStores {
 public:
  using Run = latchkey::Run;  // not GoogleTest's

 protected:
  std::string url_as(const std::string& role) const {
    return std::string(url()).replace(url().find("latchkey@"), 8, role);
  }
  // A role of this test's own that can log in.
  std::string make_role(const std::string& options = "") {
    static int made = 0;
    const std::string role = "server_" + std::to_string(++made);
    admin.execute("CREATE ROLE " + role + " LOGIN " + options);
    return role;
  }
  Error refused(const std::string& at) {
    SystemRandom random;
    const auto opened = migrate::open_postgres({.url = at}, clock_, random);
    EXPECT_FALSE(opened);
    return opened ? Error{} : opened.error();
  }
  // Every row of every table, and every sequence.
  std::string everything() {
    return admin.ask_one(
        "SELECT string_agg(query_to_xml('SELECT * FROM ' || oid::regclass, true, false, '')::text, '' ORDER BY oid) "
        "FROM pg_class WHERE relnamespace = 'latchkey'::regnamespace AND relkind IN ('r', 'S')");
  }
  static void expect_serves(Store& store, const std::string& prefix = "");

  PgClient admin{url()};
};

// Runs every operation of a server for two tenants; `prefix` separates the tenants of several calls.
void SqlServer::expect_serves(Store& store, const std::string& prefix) {
  Verbs verbs(store);
  for (const std::string& tenant : {prefix + "acme", prefix + "globex"}) {
    const Won won = std::get<Won>(verbs.claim(a_claim("k", tenant)));
    const RunId id = won.run.id();
    EXPECT_TRUE(std::holds_alternative<Extended>(verbs.extend({tenant, id, won.fence, {}})));
    EXPECT_TRUE(std::get<Settled>(verbs.settle({tenant, id, won.fence, Complete{"of " + tenant, {}}})).changed);
    EXPECT_EQ(std::get<Replay>(verbs.claim(a_claim("k", tenant))).run.as<Completed>()->result, "of " + tenant);
    verbs.note({.run = id, .seen = {}});
    EXPECT_TRUE(store.find(tenant, id).value());
    EXPECT_TRUE(store.find({}, id).value());
    EXPECT_TRUE(store.find_latest({tenant, "f", "k", hash_key(tenant, "f", "k")}).value());

    const Run job = std::get<Enqueued>(verbs.enqueue(a_job("j", tenant))).run;
    const auto taken = verbs.take({.tenant = tenant, .functions = {"f"}, .limit = 5, .session = id_of(5)});
    ASSERT_EQ(taken.size(), 1u);
    const auto failed = std::get<Settled>(verbs.settle({tenant, job.id(), taken[0].fence, permanent()}));
    ASSERT_TRUE(failed.dead_letter);
    const Page page = store.list({.tenant = tenant}).value();
    ASSERT_EQ(page.runs.size(), 2u);
    EXPECT_EQ(page.runs[0].id(), job.id());

    EXPECT_EQ(store.list_dead_letters({.tenant = tenant}).value().entries.size(), 1u);
    EXPECT_TRUE(store.find_dead_letter(tenant, *failed.dead_letter).value());
    EXPECT_EQ(store.list_members(*failed.dead_letter, 10).value().size(), 1u);
    const auto moved = store.act_on_dead_letter(
        {.tenant = tenant, .dead_letter = *failed.dead_letter, .runs = {}, .move = RetryByHand{}, .by = "ann"});
    EXPECT_TRUE(moved.value()->members.at(0).changed);
    EXPECT_TRUE(store.acknowledge(tenant, *failed.dead_letter, "ann").value()->acknowledged_at);
    EXPECT_TRUE(std::get<Moved>(verbs.move({tenant, job.id(), CancelByHand{}})).changed);
  }
  EXPECT_EQ(store.list({.tenant = prefix + "unused"}).value().runs.size(), 0u);
  TokenRecord token{.id = prefix + "token", .name = "n", .role = Role::service, .tenants = {"acme"}};
  EXPECT_TRUE(store.add_token(token));
  EXPECT_FALSE(store.list_tokens().value().empty());
  EXPECT_TRUE(store.revoke_token(token.id).value());
  EXPECT_TRUE(store.stats());
  verbs.sweep();
  verbs.purge();
}

TEST_F(SqlServer, DoesNotStartWithoutTenantIsolation) {
  struct Fault {
    const char* done;
    const char* undone;
    const char* problem;
  };
  const Fault faults[] = {
      {"ALTER TABLE latchkey.runs NO FORCE ROW LEVEL SECURITY", "ALTER TABLE latchkey.runs FORCE ROW LEVEL SECURITY",
       "table latchkey.runs does not force row-level security"},
      {"CREATE POLICY help ON latchkey.runs USING (true)", "DROP POLICY help ON latchkey.runs",
       "table latchkey.runs has the policy help, which is not Latchkey's or was changed"},
      {"GRANT INSERT ON latchkey.dead_letters TO latchkey_tenant",
       "REVOKE INSERT ON latchkey.dead_letters FROM latchkey_tenant",
       "role latchkey_tenant has the right to INSERT on latchkey.dead_letters"},
      {"GRANT EXECUTE ON FUNCTION latchkey.lock_state(bigint) TO PUBLIC",
       "REVOKE EXECUTE ON FUNCTION latchkey.lock_state(bigint) FROM PUBLIC",
       "function latchkey.lock_state(bigint) may be called by everybody"},
      // Both problems are reported.
      {"ALTER TABLE latchkey.keys DISABLE ROW LEVEL SECURITY; ALTER ROLE latchkey_engine BYPASSRLS",
       "ALTER TABLE latchkey.keys ENABLE ROW LEVEL SECURITY; ALTER ROLE latchkey_engine NOBYPASSRLS",
       "table latchkey.keys does not force row-level security; role latchkey_engine is a superuser or has BYPASSRLS"},
  };
  expect_serves(*open(url()));
  for (const Fault& fault : faults) {
    admin.execute(fault.done);
    const std::string before = everything();
    const Error error = refused(url());
    EXPECT_EQ(error.code, Code::STORE_FORMAT);
    EXPECT_EQ(error.detail, std::string("this database does not isolate tenants: ") + fault.problem);
    EXPECT_EQ(everything(), before) << fault.done;
    admin.execute(fault.undone);
  }
  Verbs(*open(url())).claim(a_claim("another"));
}

// A role that may create objects in the search_path of others (any role in `public`, on an upgraded cluster) creates an
// operator for every pair of types that has none. A caller of such an operator runs the role's code.
constexpr const char* kTraps = R"(
CREATE FUNCTION public.spring(what text) RETURNS void LANGUAGE plpgsql AS $f$
BEGIN RAISE EXCEPTION 'as % by %', current_user, what; END $f$;
DO $do$
DECLARE
  kinds constant regtype[] := '{integer,bigint,text,varchar,name,uuid,bytea,timestamptz,interval,numeric,"double precision",jsonb}';
  l regtype; r regtype; sign text; result regtype;
BEGIN
  FOREACH l IN ARRAY kinds LOOP FOREACH r IN ARRAY kinds LOOP FOREACH sign IN ARRAY '{=,<>,<,>,<=,>=,+,-,*,/,%,||,&,->,#>>,~}'::text[] LOOP
    CONTINUE WHEN EXISTS (SELECT FROM pg_operator WHERE oprname = sign AND oprleft = l AND oprright = r);
    result := CASE WHEN sign IN ('=', '<>', '<', '>', '<=', '>=', '~') THEN 'boolean'::regtype ELSE l END;
    EXECUTE format('CREATE OR REPLACE FUNCTION public.trap_%s(%s, %s) RETURNS %s LANGUAGE plpgsql AS %L', replace(result::text, ' ', '_'), l, r, result,
      format('BEGIN PERFORM public.spring(%L); RETURN NULL; END', l || sign || r));
    EXECUTE format('CREATE OPERATOR public.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = public.trap_%s)', sign, l, r, replace(result::text, ' ', '_'));
  END LOOP; END LOOP; END LOOP;
END $do$)";

TEST_F(SqlServer, OperatorsOnTheSearchPathAreNotCalled) {
  admin.execute(kTraps);
  EXPECT_ANY_THROW(admin.execute("SELECT 2::bigint * interval '1 s'")) << "the test cannot fail";
  EXPECT_ANY_THROW(admin.execute("SELECT clock_timestamp() + '1 s'"));
  admin.execute("DROP SCHEMA IF EXISTS latchkey CASCADE");
  expect_serves(*open(url()));  // and sets itself up
  PgClient reader(url());
  reader.execute("SET app.current_tenant = 'acme'");
  for (const char* view : {"job_runs", "sync_run_log", "dead_letter_queue", "sync_errors", "geoprocessing_idempotency"})
    reader.execute(std::string("SELECT * FROM latchkey.") + view);
  reader.execute(
      "SELECT latchkey.begin_run('f', 'k'); SELECT latchkey.enqueue('f', 'j', delay => '1 h'); "
      "SELECT latchkey.are_held('{00000000-0000-4000-8000-000000000001}', 50); SELECT latchkey.check_security()");
}

// The schema `before` precedes pg_catalog in the search_path, and so shadows PostgreSQL's own functions.
TEST_F(SqlServer, NamesThatShadowTheCatalogAreNotCalled) {
  admin.execute(R"(
CREATE SCHEMA before;
GRANT USAGE ON SCHEMA before TO PUBLIC;
CREATE FUNCTION before.spring(what pg_catalog.text) RETURNS pg_catalog.bool LANGUAGE plpgsql AS $f$
BEGIN RAISE EXCEPTION 'as % by %', current_user, what; END $f$;
DO $do$
DECLARE
  one record;
BEGIN
  FOR one IN SELECT o.oprname, o.oprleft::regtype AS l, o.oprright::regtype AS r FROM pg_operator o
             WHERE o.oprkind = 'b' AND o.oprresult = 'boolean'::regtype AND o.oprleft::regtype::text NOT LIKE 'any%'
               AND o.oprright::regtype::text NOT LIKE 'any%' LOOP
    EXECUTE format('CREATE OR REPLACE FUNCTION before.trap(%s, %s) RETURNS pg_catalog.bool LANGUAGE plpgsql AS %L', one.l, one.r,
                   format('BEGIN RETURN before.spring(%L); END', one.l || one.oprname || one.r));
    EXECUTE format('CREATE OPERATOR before.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = before.trap)', one.oprname, one.l, one.r);
  END LOOP;
  FOR one IN SELECT DISTINCT p.proname, pg_get_function_identity_arguments(p.oid) AS takes, p.prorettype::regtype AS gives FROM pg_proc p
             WHERE p.proname IN ('to_char', 'hashtext', 'setval', 'nextval', 'set_config', 'current_setting', 'to_regclass', 'pg_notify',
                                 'pg_try_advisory_xact_lock', 'pg_advisory_xact_lock', 'pg_backend_pid', 'clock_timestamp', 'now')
               AND p.pronamespace = 'pg_catalog'::regnamespace LOOP
    EXECUTE format('CREATE FUNCTION before.%I(%s) RETURNS %s LANGUAGE plpgsql AS %L', one.proname, one.takes, one.gives,
                   format('BEGIN PERFORM before.spring(%L); END', one.proname));
  END LOOP;
END $do$;
CREATE DOMAIN before.text AS pg_catalog.text CHECK (before.spring('text'));
DROP SCHEMA IF EXISTS latchkey CASCADE)");
  admin.execute("ALTER DATABASE " + database() + " SET search_path = before, pg_catalog");
  EXPECT_ANY_THROW(PgClient(url()).execute("SELECT 1 WHERE 'a'::name = 'a'::pg_catalog.text"))
      << "the test cannot fail";
  EXPECT_ANY_THROW(PgClient(url()).execute("SELECT 'a'::text"));
  expect_serves(*open(url()), "first-");  // and sets itself up
  expect_serves(*open(url()), "again-");
  admin.execute("ALTER DATABASE " + database() + " RESET search_path; DROP SCHEMA before CASCADE");
}

TEST_F(SqlServer, ServesWithASuperusersUrl) {
  expect_serves(*open(url()), "first-");
  expect_serves(*open(url()), "again-");
}

// Policies do not apply to a superuser: a transaction without SET ROLE would find the rows that the policies hide. The
// policies are changed while the stores run, as no store would start on such a database. One store goes through a
// pooler, where every transaction sets its role itself.
TEST_F(SqlServer, EveryTransactionSetsARoleUnderPolicies) {
  const PgBouncer bouncer(PgServer::instance().port(), 4);
  const std::unique_ptr<PostgresStore> stores[] = {open(url(), {.patience = 300ms}),
                                                   open(bouncer.url(database()), {.patience = 300ms})};
  Verbs verbs(*stores[0]);
  const Won done = std::get<Won>(verbs.claim(a_claim("k", "acme"))),
            bad = std::get<Won>(verbs.claim(a_claim("b", "acme")));
  const RunId id = done.run.id();
  verbs.settle({{}, id, done.fence, Complete{"r", {}}});
  const Uuid letter = *std::get<Settled>(verbs.settle({{}, bad.run.id(), bad.fence, permanent()})).dead_letter;
  ClaimRequest brief = a_claim("running", "acme"), lock = a_claim("lock", "acme");
  brief.lease = 1ms;  // to be swept
  brief.on_doubt = OnDoubt::hold;
  ASSERT_TRUE(std::holds_alternative<Won>(verbs.claim(brief)));
  lock.guard = Guard::while_running;  // to be purged: it has no window
  const Won over = std::get<Won>(verbs.claim(lock));
  verbs.settle({{}, over.run.id(), over.fence, Complete{}});
  verbs.enqueue(a_job("job", "acme"));
  verbs.note({id, {{{"replay", 3, kNoon, kNoon}}, {{kNoon, "replay", "ann"}}}});
  ASSERT_TRUE(stores[0]->add_token({.id = "t", .name = "n", .role = Role::service, .tenants = {}}));
  const KeyName name{"acme", "f", "k", hash_key("acme", "f", "k")};
  const auto claim = [](Store& store) {
    return await_result<ClaimReply>([&](auto reply) { store.claim(a_claim("k", "acme"), std::move(reply)); });
  };
  struct Seen {
    std::size_t of_tenant = 0, of_all = 0;
    bool operator==(const Seen&) const = default;
  };
  const auto look = [&](Store& store) {
    const auto count = [&](const std::optional<std::string>& tenant) {
      return store.list({.tenant = tenant}).value().runs.size() + store.find(tenant, id).value().has_value() +
             store.list_dead_letters({.tenant = tenant}).value().entries.size() +
             store.find_dead_letter(tenant, letter).value().has_value();
    };
    return Seen{count("acme") + store.find_latest(name).value().has_value(),
                count({}) + store.list_members(letter, 9).value().size() + store.list_tokens().value().size()};
  };
  // The maintenance and the jobs that a store finds, and its counts.
  const auto work = [](Store& store) {
    Verbs its(store);
    const std::size_t swept = its.sweep(9).changed, purged = its.purge({.done = {}, .failed = {}}, 9).changed;
    return std::vector{swept, purged, its.take({.functions = {"f"}, .limit = 9, .session = id_of(5)}).size()};
  };
  const auto counted = [&](Store& store) {
    const StoreStats stats = store.stats().value();
    const auto duplicates = store.find_duplicates(id).value();
    return stats.queued + stats.running + stats.in_doubt + stats.unacknowledged_dead_letters +
           (duplicates ? duplicates->counts.size() : 0);
  };
  // The store reads its next deadline about once a second.
  const auto has_deadline = [&](Store& store, bool expected) {
    for (const Duration patience = clock_.elapsed() + kPatience; clock_.elapsed() < patience; std::this_thread::yield())
      if (store.next_deadline().has_value() == expected) return true;
    return false;
  };
  for (const auto& store : stores) {
    EXPECT_EQ(look(*store), (Seen{9, 10}));
    EXPECT_EQ(counted(*store), 4u);
    EXPECT_TRUE(std::holds_alternative<Replay>(claim(*store).value()));
    EXPECT_TRUE(has_deadline(*store, true));
  }
  const auto hide_from = [&](const std::string& policy, const std::string& seen = "false") {
    for (const std::string table :
         {"runs", "keys", "states", "blocks", "outcomes", "duplicates", "dead_letters", "dead_letter_members"})
      if (table != "keys" || policy == "engine")  // which only the engine may read
        admin.execute("ALTER POLICY " + policy + " ON latchkey." + table + " USING (" + seen + ")");
  };
  hide_from("tenant");
  for (const auto& store : stores) {
    EXPECT_EQ(look(*store), (Seen{1, 10})) << "the engine looks up keys";
    EXPECT_TRUE(std::holds_alternative<Replay>(claim(*store).value())) << "the engine sees all rows";
  }
  hide_from("engine");
  admin.execute("ALTER POLICY engine ON latchkey.tokens USING (false)");
  for (const auto& store : stores) {
    EXPECT_EQ(look(*store), (Seen{0, 0}));
    const auto reply = claim(*store);
    EXPECT_EQ(reply ? Code{} : reply.error().code, Code::STORE_UNAVAILABLE) << "the key exists and cannot be seen";
    EXPECT_EQ(work(*store), (std::vector<std::size_t>{0, 0, 0}));
    EXPECT_EQ(counted(*store), 0u);
    EXPECT_TRUE(has_deadline(*store, false)) << "no lease that expires is seen";
  }
  hide_from("engine", "true");
  std::vector<std::size_t> done_now = work(*stores[1]);  // a store searches all jobs once a second
  EXPECT_TRUE(wait_until([&] { return done_now[2] > 0 || (done_now[2] = work(*stores[1])[2]) > 0; }));
  EXPECT_EQ(done_now, (std::vector<std::size_t>{1, 1, 1})) << "a run to sweep, a run to purge, a job";
}

TEST_F(SqlServer, ServesWithTheDatabaseOwnersUrl) {
  open(url());  // creates the roles
  for (const char* options : {"CREATEROLE", ""}) {
    admin.execute("DROP SCHEMA latchkey CASCADE");
    const std::string owner = make_role(options);
    admin.execute("GRANT latchkey_engine, latchkey_tenant, latchkey_service TO " + owner + "; ALTER DATABASE " +
                  database() + " OWNER TO " + owner);
    {
      const auto store = open(url_as(owner));  // applies the migrations
      expect_serves(*store, "first-");
    }
    expect_serves(*open(url_as(owner)), "again-");
    EXPECT_EQ(PgClient(url_as(owner))
                  .ask_one("SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = "
                           "'latchkey.runs'::regclass"),
              owner);
    admin.execute("ALTER DATABASE " + database() + " OWNER TO latchkey");
  }
}

TEST_F(SqlServer, ServesWithARoleMembersUrl) {
  open(url());
  const std::string member = make_role();
  admin.execute("GRANT latchkey_engine, latchkey_tenant, latchkey_service TO " + member);
  expect_serves(*open(url_as(member)));
  EXPECT_THROW(PgClient(url_as(member)).execute("ALTER TABLE latchkey.runs DISABLE ROW LEVEL SECURITY"),
               std::runtime_error);
}

TEST_F(SqlServer, MissingRoleIsReported) {
  open(url());
  for (const char* missing : {"latchkey_tenant", "latchkey_service"}) {
    const std::string member = make_role();
    admin.execute("GRANT latchkey_engine, latchkey_tenant, latchkey_service TO " + member + "; REVOKE " + missing +
                  " FROM " + member);
    const std::string before = everything();
    const Error error = refused(url_as(member));
    EXPECT_EQ(error.detail, "this database does not isolate tenants: role " + member +
                                ", which the server connects as, is not a member of " + missing);
    EXPECT_EQ(everything(), before);
  }
  const std::string stranger = make_role(), withholding = make_role("NOINHERIT");
  admin.execute("GRANT latchkey_engine, latchkey_tenant, latchkey_service TO " + withholding);
  for (const std::string& role : {stranger, withholding}) {
    const Error error = refused(url_as(role));
    EXPECT_EQ(error.code, Code::FORBIDDEN);
    EXPECT_NE(error.detail.find("or be a member of latchkey_engine that inherits its rights"), std::string::npos)
        << error.detail;
  }
}

// Only servers may read the ledger of migrations, and only its owner may write it.
TEST_F(SqlServer, TenantsCannotReadTheMigrationLedger) {
  open(url());
  const std::string believed = make_role(), bound = make_role(), server = make_role();
  admin.execute("GRANT latchkey_service TO " + believed + "; GRANT latchkey_tenant TO " + bound +
                "; INSERT INTO latchkey.tenant_roles VALUES ('" + bound + "', 'acme'); " +
                "GRANT latchkey_engine, latchkey_tenant, latchkey_service TO " + server);
  const std::string before = admin.ask_one("SELECT string_agg(m::text, ' ') FROM latchkey.migrations m");
  const std::string changes[] = {"INSERT INTO latchkey.migrations SELECT * FROM latchkey.migrations",
                                 "UPDATE latchkey.migrations SET name = ''", "DELETE FROM latchkey.migrations",
                                 "TRUNCATE latchkey.migrations", "DROP TABLE latchkey.migrations"};
  for (const std::string& role : {believed, bound}) {
    PgClient session(url_as(role));
    session.execute("SET app.current_tenant = 'acme'");
    EXPECT_THROW(session.execute("SELECT * FROM latchkey.migrations"), std::runtime_error);
    for (const std::string& change : changes) EXPECT_THROW(session.execute(change), std::runtime_error) << change;
  }
  PgClient session(url_as(server));
  EXPECT_NE(session.ask_one("SELECT count(*) FROM latchkey.migrations"), "0");
  for (const std::string& change : changes) EXPECT_THROW(session.execute(change), std::runtime_error) << change;
  EXPECT_EQ(admin.ask_one("SELECT string_agg(m::text, ' ') FROM latchkey.migrations m"), before);
}

// A pooler hands over a connection with the settings of its last client. The server must not use them.
TEST_F(SqlServer, IgnoresSettingsLeftInPooledConnections) {
  const PgBouncer bouncer(PgServer::instance().port(), 1);
  const std::string through = bouncer.url(database());
  const auto store = open(through, {.writers = 1, .readers = 1, .patience = 60s});
  PgClient other(through);
  other.execute("SET app.current_tenant = 'globex'");
  other.execute("SET app.current_actor = 'stranger'");
  other.execute("SET SESSION enable_indexscan = on");
  expect_serves(*store);
  for (const char* left : {"row_security = off", "DateStyle = 'German'", "default_transaction_read_only = on"}) {
    other.execute(std::string("SET ") + left);
    expect_serves(*store, std::string(1, left[0]));
  }
}

// An acknowledged change must be durable: the server overrides a weaker synchronous_commit of a pooled connection or of
// its role. It also overrides statement_timeout, and client_min_messages, because a commit that may not be replicated
// is a warning.
TEST_F(SqlServer, SetsDurabilityInEveryTransaction) {
  const PgBouncer bouncer(PgServer::instance().port(), 1);
  const auto pooled = open(bouncer.url(database()), {.writers = 1, .readers = 1, .patience = 60s});
  PgClient(bouncer.url(database()))
      .execute("SET synchronous_commit = off; SET statement_timeout = '9s'; SET client_min_messages = error");
  const auto direct =
      open(url() + "?options=-csynchronous_commit%3Doff%20-cstatement_timeout%3D9s%20-cclient_min_messages%3Derror",
           {.writers = 1, .readers = 1});
  // A trigger records the settings of each transaction.
  PgClient admin(url());
  admin.execute(
      "CREATE TABLE public.modes (mode text); GRANT INSERT ON public.modes TO latchkey_engine; CREATE FUNCTION "
      "public.note_mode() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO public.modes SELECT "
      "concat_ws(' ', current_setting('synchronous_commit'), current_setting('statement_timeout'), "
      "current_setting('client_min_messages')); RETURN NEW; END $$; "
      "CREATE TRIGGER note_mode AFTER INSERT ON "
      "latchkey.batches FOR EACH ROW EXECUTE FUNCTION public.note_mode()");
  for (const auto* store : {&pooled, &direct}) {
    Verbs(**store).claim(a_claim(store == &pooled ? "pooled" : "direct"));
    EXPECT_EQ(admin.ask_one("SELECT string_agg(DISTINCT mode, ' ') FROM public.modes"), "on 0 warning");
    admin.execute("DELETE FROM public.modes");
  }
}

}  // namespace
}  // namespace latchkey
