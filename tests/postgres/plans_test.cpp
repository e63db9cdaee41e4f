// The query plans of a store's statements on tables with thousands of rows: each statement uses an index and reads only
// the rows that it needs, with any statistics of the tables.
#include <gtest/gtest.h>

#include <iostream>
#include <map>
#include <set>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "migrate/open_postgres.hpp"
#include "support/postgres/fault_proxy.hpp"
#include "support/postgres/query_plan_driver.hpp"
#include "support/postgres/query_plan_log.hpp"
#include "support/postgres/statement_kinds.hpp"

namespace latchkey {
namespace {

constexpr int kRows = 10'000;
// A statement may search a run in several tables, and may find several versions of its row.
constexpr double kRowsPerRun = 8, kRowsMore = 60;
constexpr double kPagesPerRun = 40, kPagesMore = 300;

const std::set<std::string> kBig{"runs",
                                 "states",
                                 "outcomes",
                                 "settlements",
                                 "keys",
                                 "blocks",
                                 "batches",
                                 "waits",
                                 "duplicates",
                                 "dead_letter_members",
                                 "dead_letter_steps",
                                 "transitions",
                                 "entities",
                                 "entity_moves"};

// A step is announced as "name @ runs_max".
double runs_max_of(const std::string& step) { return std::stod(step.substr(step.rfind('@') + 1)); }

class QueryPlans : public ::testing::Test {
 protected:
  std::unique_ptr<PostgresStore> open(const std::string& url) {
    PostgresSettings settings;
    settings.url = url;
    settings.writers = 1;
    auto opened = migrate::open_postgres(std::move(settings), clock_, random_);
    if (!opened) throw std::runtime_error(to_string(opened.error()));
    return std::move(*opened);
  }
  // Fills the tables that TableFiller does not fill.
  void fill_rest(const std::string& database) {
    client(database).execute(
        "INSERT INTO latchkey.duplicates SELECT seq, tenant, '' FROM latchkey.runs WHERE function = 'done';"
        "INSERT INTO latchkey.waits SELECT seq, seq, id, tenant FROM latchkey.runs WHERE function = 'done';"
        "INSERT INTO latchkey.batches SELECT id, created_at FROM latchkey.runs WHERE function = 'done';"
        "INSERT INTO latchkey.dead_letter_steps SELECT seq, generation, tenant, 2, 'bob', at, '' FROM "
        "latchkey.dead_letter_members");
  }
  PgClient client(const std::string& database) { return PgClient(log_.quiet_url(database)); }
  void fill(const std::string& database, const std::function<void(TableFiller&)>& work) {
    const auto store = open(log_.quiet_url(database));
    TableFiller filler(*store);
    work(filler);
  }
  void make(const std::string& database, const std::string& from = "template1") {
    client("postgres").execute("CREATE DATABASE " + database + " TEMPLATE " + from);
  }

  void check(const std::string& database) {
    {
      const auto store = open(log_.url(database));
      PgClient admin = client(database);
      QueryPlanDriver driver(*store, admin, [&](const std::string& name, int runs_max) {
        log_.announce(name + " @ " + std::to_string(runs_max));
      });
      driver.run();
    }
    lose_commit_reply(database);
    change_server(database);
    const auto seen = judge(database, log_.read());
    for (const StatementKind& kind : kStatementKinds)
      EXPECT_TRUE(seen.contains(kind.name)) << database << ": no statement was observed of the kind: " << kind.name;
    for (const std::string& name : seen)
      EXPECT_FALSE(name.starts_with('?')) << database << ": unknown kind of statement: " << name;
  }

  // Loses the reply to a COMMIT, so that the store resolves the unknown commit.
  void lose_commit_reply(const std::string& database) {
    log_.announce("");
    FaultProxy proxy(log_.port());
    const auto store = open(proxy.url(database));
    proxy.arm({.at = FaultAt::commit_reply});
    log_.announce("enqueue with a lost commit reply @ 1");
    enqueue_jobs(*store, jobs_of("walk", 1));
    EXPECT_EQ(proxy.fired(), 1u);
  }

  // Changes the server identity, so that the store expires all leases.
  void change_server(const std::string& database) {
    log_.announce("");
    FaultProxy proxy(log_.port());
    const auto store = open(proxy.url(database));
    enqueue_jobs(*store, jobs_of("walk", 1));
    PgClient admin = client(database);
    const std::string leases =
        "SELECT (SELECT count(*) FROM latchkey.states WHERE status = 1 AND lease_until > 1e3 * extract(epoch FROM "
        "now())) + (SELECT count(*) FROM latchkey.blocks WHERE session IS NOT NULL AND lease_until > 1e3 * extract("
        "epoch FROM now()))";
    const std::string leased = admin.ask_one(leases);
    admin.execute("UPDATE latchkey.place SET timeline = '00000000'");
    proxy.cut_all();
    log_.announce("expire all leases @ " + leased);
    enqueue_jobs(*store, jobs_of("walk", 1));
    EXPECT_NE(leased, "0");
    EXPECT_EQ(admin.ask_one(leases), "0");
  }

  // Fails the test for every plan that reads too much. Returns the observed kinds of statements.
  std::set<std::string> judge(const std::string& where, const std::vector<QueryPlan>& plans);

  void make_filled();
  static void SetUpTestSuite() { suite_log_ = std::make_unique<QueryPlanLog>(); }
  static void TearDownTestSuite() { suite_log_.reset(); }

  SystemClock clock_;
  SystemRandom random_;
  QueryPlanLog& log_ = *suite_log_;

 private:
  static inline std::unique_ptr<QueryPlanLog> suite_log_;
  static inline bool is_filled_ = false;
};

// Some lists scan a tenant's heads until the page is full: an index for them would cost more at every insert than it
// saves (ADR 0015). Only their joins and scans are checked.
bool is_scan(const std::string& step) { return step.starts_with("list a key") || step.starts_with("list since"); }

struct Most {
  int times = 0;
  double rows = 0, pages = 0;
};

std::set<std::string> QueryPlans::judge(const std::string& where, const std::vector<QueryPlan>& plans) {
  std::map<std::string, std::string> names;
  std::map<std::string, Most> seen;
  std::set<std::string> problems;
  for (const QueryPlan& plan : plans) {
    if (plan.step.empty() || plan.sql.find("latchkey.") == std::string::npos) continue;
    std::string& name = names[plan.sql];
    if (name.empty()) name = statement_kind(plan.sql);
    Most& most = seen[name];
    most.times += 1;
    most.rows = std::max(most.rows, plan.rows);
    most.pages = std::max(most.pages, plan.pages);
    const auto report = [&](const std::string& what) {
      problems.insert(where + ": " + name + " (" + plan.step + "): " + what + "\n    " + plan.sql + plan.outline);
    };
    for (const std::string& join : plan.joins)
      if (join != "Nested Loop") report(join);
    for (const QueryPlanScan& scan : plan.scans)
      if (scan.node == "Seq Scan" && kBig.contains(scan.table)) report("reads all of " + scan.table);
    const double runs_max = runs_max_of(plan.step);
    if (is_scan(plan.step)) continue;
    if (plan.rows > kRowsMore + kRowsPerRun * runs_max)
      report("reads " + std::to_string(static_cast<long>(plan.rows)) + " rows");
    // The first reads of the catalogue count, too, so statements without scans have no page limit.
    if (!plan.scans.empty() && plan.pages > kPagesMore + kPagesPerRun * runs_max)
      report("accesses " + std::to_string(static_cast<long>(plan.pages)) + " pages");
  }
  std::cout << where << ": times, rows, pages at most\n";
  for (const auto& [name, most] : seen)
    std::cout << "  " << most.times << "\t" << most.rows << "\t" << most.pages << "\t" << name << "\n";
  for (const std::string& problem : problems) ADD_FAILURE() << problem;
  std::set<std::string> all;
  for (const auto& [name, most] : seen) all.insert(name);
  return all;
}

// Creates the template database: thousands of runs in every table, without ANALYZE.
void QueryPlans::make_filled() {
  if (std::exchange(is_filled_, true)) return;
  make("history");
  fill("history", [](TableFiller& filler) { filler.fill_history(kRows); });
  fill_rest("history");
  make("filled", "history");
  fill("filled", [](TableFiller& filler) { filler.fill_blocks(kRows); });
}

TEST_F(QueryPlans, UseIndexesWithoutAnalyze) {
  make_filled();
  make("fresh", "filled");
  ASSERT_EQ(client("fresh").ask_one("SELECT count(*) FROM pg_class WHERE relnamespace = 'latchkey'::regnamespace AND "
                                    "relkind = 'r' AND reltuples >= 0"),
            "0");
  check("fresh");
}

TEST_F(QueryPlans, UseIndexesAfterAnalyze) {
  make_filled();
  make("analysed", "filled");
  client("analysed").execute("ANALYZE");
  check("analysed");
}

// ANALYZE runs while an old snapshot protects dead rows: it finds few live rows in thousands of pages.
TEST_F(QueryPlans, UseIndexesOnBloatedTable) {
  make_filled();
  make("bloated", "history");
  PgClient reader = client("bloated");
  reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM latchkey.job_runs");
  fill("bloated", [](TableFiller& filler) { filler.churn_blocks(kRows); });
  PgClient admin = client("bloated");
  admin.execute("VACUUM latchkey.blocks");
  admin.execute("ANALYZE latchkey.blocks");
  EXPECT_LE(std::stod(admin.ask_one("SELECT reltuples FROM pg_class WHERE oid = 'latchkey.blocks'::regclass")), 10);
  EXPECT_GE(std::stod(admin.ask_one("SELECT relpages FROM pg_class WHERE oid = 'latchkey.blocks'::regclass")), 200);
  reader.execute("COMMIT");
  admin.execute("VACUUM (TRUNCATE false) latchkey.blocks");
  check("bloated");
}

TEST_F(QueryPlans, UseIndexesAfterHundredfoldGrowth) {
  make("grown");
  const auto fill_both = [&](int count) {
    fill("grown", [&](TableFiller& filler) {
      filler.fill_history(count);
      filler.fill_blocks(count);
    });
  };
  fill_both(kRows / 100);
  client("grown").execute("ANALYZE");
  fill_both(kRows);
  fill_rest("grown");
  check("grown");
}

// A session caches the plans of the functions that it has called. These plans were made on empty tables.
TEST_F(QueryPlans, SqlFunctionsUseIndexesAfterGrowth) {
  make("functions");
  const auto store = open(log_.quiet_url("functions"));
  PgClient session(log_.url("functions"));
  session.execute("SELECT set_config('app.current_tenant', 'default', false)");
  client("functions").execute("INSERT INTO latchkey.members VALUES ('default', 'ann', 'org-admin')");
  client("functions").execute("INSERT INTO latchkey.transitions VALUES ('default', 'm', 'a', 'go', 'b')");
  int keys = 0;
  const auto call = [&](const std::string& name, const std::string& rest) {
    log_.announce(name + " @ 1");
    session.execute("SELECT latchkey." + name + rest);
  };
  const auto call_all = [&] {
    const std::string key = "'sql" + std::to_string(++keys) + "'";
    call("begin_run", "('sql', " + key + ")");
    call("begin_run", "('sql', " + key + ")");
    const std::string run = client("functions")
                                .ask_one(
                                    "SELECT quote_literal(r.id) || ', ' || s.fence FROM latchkey.runs r JOIN "
                                    "latchkey.states s USING (seq) WHERE "
                                    "r.function = 'sql' AND r.key = convert_to(" +
                                    key + ", 'UTF8')");
    call("heartbeat", "(" + run + ")");
    call("enqueue", "('sqljob', after => ARRAY[" + run.substr(0, run.find(',')) + "]::uuid[], on_failed => 'run')");
    call(keys % 2 == 0 ? "complete_run" : "fail_run",
         "(" + run + (keys % 2 == 0 ? ", 'done')" : ", 'no', retryable => false)"));
    if (keys % 2 == 1)
      call("acknowledge_dlq_entry",
           "('" + client("functions").ask_one("SELECT id FROM latchkey.dead_letters WHERE acknowledged_at IS NULL") +
               "', 'ann')");
    const std::string move = "('m', " + key + ", 'go', start => 'a', call_id => " + "latchkey.name_uuid(" + key + "))";
    call("transition", move);
    call("transition", move);
    call("begin_run", "('sql', " + key + ")");
    call("enqueue", "('sqljob', " + key + ")");
    call("enqueue", "('sqljob', " + key + ")");
    // A job in the middle of a block.
    const std::string block = "b" + std::to_string(keys) + ".";
    enqueue_jobs(*store, jobs_of("block", 9, block));
    const auto taken = take_jobs(*store, {"block"}, 9);
    call("begin_run", "('block', '" + block + "4')");
    call("enqueue", "('sqljob', after => ARRAY['" + to_string(taken.at(4).run.id()) + "']::uuid[])");
    call("complete_run", "('" + to_string(taken.at(4).run.id()) + "', " +
                             std::to_string(static_cast<std::uint64_t>(taken[4].fence)) + ", 'done')");
  };
  for (int i = 0; i < 12; ++i) call_all();
  TableFiller filler(*store);
  filler.fill_history(kRows / 4);
  filler.fill_blocks(kRows / 4);
  fill_rest("functions");
  client("functions")
      .execute(
          "INSERT INTO latchkey.entities SELECT 'default', 'm', 'many' || i, 'b', 1 FROM generate_series(1, 2500) i;"
          "INSERT INTO latchkey.entity_moves SELECT 'default', 'm', 'many' || i, 1, 'go', 'a', 'b', gen_random_uuid(), "
          "1 FROM "
          "generate_series(1, 2500) i;"
          "INSERT INTO latchkey.transitions SELECT 'default', 'm' || i, 'a', 'go', 'b' FROM generate_series(1, 2500) "
          "i");
  log_.read();
  call_all();
  call_all();
  EXPECT_GE(judge("functions", log_.read()).size(), 10u);
}

}  // namespace
}  // namespace latchkey
