// How PostgreSQL carries out each statement of a store whose tables hold thousands of rows: through an index, reading
// no more than was asked for, whatever it knows or believes about the tables.
#include <gtest/gtest.h>

#include <iostream>
#include <map>
#include <set>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "migrate/open_postgres.hpp"
#include "support/postgres/fault_proxy.hpp"
#include "support/postgres/plan_kinds.hpp"
#include "support/postgres/plan_log.hpp"
#include "support/postgres/plan_walk.hpp"

namespace latchkey {
namespace {

constexpr int kRows = 10'000;
// A run may be looked for in several tables, and found in a row that somebody has just changed.
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

// Steps are announced as "name @ asked".
double asked_in(const std::string& step) { return std::stod(step.substr(step.rfind('@') + 1)); }

class Plans : public ::testing::Test {
 protected:
  std::unique_ptr<PostgresStore> open(const std::string& url) {
    PostgresSettings settings;
    settings.url = url;
    settings.writers = 1;
    auto opened = migrate::open_postgres(std::move(settings), clock_, random_);
    if (!opened) throw std::runtime_error(to_string(opened.error()));
    return std::move(*opened);
  }
  // What the fillers leave out: as many of what is kept beside runs.
  void fill_rest(const std::string& database) {
    client(database).execute(
        "INSERT INTO latchkey.duplicates SELECT seq, tenant, '' FROM latchkey.runs WHERE function = 'done';"
        "INSERT INTO latchkey.waits SELECT seq, seq, id, tenant FROM latchkey.runs WHERE function = 'done';"
        "INSERT INTO latchkey.batches SELECT id, created_at FROM latchkey.runs WHERE function = 'done';"
        "INSERT INTO latchkey.dead_letter_steps SELECT seq, generation, tenant, 2, 'bob', at, '' FROM "
        "latchkey.dead_letter_members");
  }
  PgClient client(const std::string& database) { return PgClient(log_.quiet_url(database)); }
  void fill(const std::string& database, const std::function<void(PlanFiller&)>& work) {
    const auto store = open(log_.quiet_url(database));
    PlanFiller filler(*store);
    work(filler);
  }
  void make(const std::string& database, const std::string& from = "template1") {
    client("postgres").execute("CREATE DATABASE " + database + " TEMPLATE " + from);
  }

  void check(const std::string& database) {
    {
      const auto store = open(log_.url(database));
      PgClient hand = client(database);
      PlanWalk walk(*store, hand,
                    [&](const std::string& name, int asked) { log_.announce(name + " @ " + std::to_string(asked)); });
      walk.walk();
    }
    lose_answer(database);
    come_elsewhere(database);
    const auto seen = judge(database, log_.read());
    for (const Kind& kind : kKinds)
      EXPECT_TRUE(seen.contains(kind.name)) << database << ": no statement was seen that would " << kind.name;
    for (const std::string& name : seen)
      EXPECT_FALSE(name.starts_with('?')) << database << ": of no kind that is known: " << name;
  }

  // To a COMMIT: what became of it is looked for.
  void lose_answer(const std::string& database) {
    log_.announce("");
    FaultProxy proxy(log_.port());
    const auto store = open(proxy.url(database));
    proxy.arm({.at = FaultAt::commit_answered});
    log_.announce("enqueue one whose answer is lost @ 1");
    enqueue_jobs(*store, jobs_of("walk", 1));
    EXPECT_EQ(proxy.fired(), 1u);
  }

  // To another server than before: all leases end there.
  void come_elsewhere(const std::string& database) {
    log_.announce("");
    FaultProxy proxy(log_.port());
    const auto store = open(proxy.url(database));
    enqueue_jobs(*store, jobs_of("walk", 1));
    PgClient hand = client(database);
    const std::string leases =
        "SELECT (SELECT count(*) FROM latchkey.states WHERE status = 1 AND lease_until > 1e3 * extract(epoch FROM "
        "now())) + (SELECT count(*) FROM latchkey.blocks WHERE session IS NOT NULL AND lease_until > 1e3 * extract("
        "epoch FROM now()))";
    const std::string leased = hand.ask_one(leases);
    hand.execute("UPDATE latchkey.place SET timeline = '00000000'");
    proxy.cut_all();
    log_.announce("end all leases @ " + leased);
    enqueue_jobs(*store, jobs_of("walk", 1));
    EXPECT_NE(leased, "0");
    EXPECT_EQ(hand.ask_one(leases), "0");
  }

  // Fails for every plan that is not good; what was seen.
  std::set<std::string> judge(const std::string& where, const std::vector<SeenPlan>& plans);

  void make_filled();
  static void SetUpTestSuite() { suite_log_ = std::make_unique<PlanLog>(); }
  static void TearDownTestSuite() { suite_log_.reset(); }

  SystemClock clock_;
  SystemRandom random_;
  PlanLog& log_ = *suite_log_;

 private:
  static inline std::unique_ptr<PlanLog> suite_log_;
  static inline bool is_filled_ = false;
};

// Lists for people that walk the heads of a tenant until the page is full: an index for them would cost every insert
// more than they are worth (ADR 0015). Their joins and scans are judged all the same.
bool is_walk(const std::string& step) { return step.starts_with("list a key") || step.starts_with("list since"); }

struct Most {
  int times = 0;
  double rows = 0, pages = 0;
};

std::set<std::string> Plans::judge(const std::string& where, const std::vector<SeenPlan>& plans) {
  std::map<std::string, std::string> names;
  std::map<std::string, Most> seen;
  std::set<std::string> complaints;
  for (const SeenPlan& plan : plans) {
    if (plan.step.empty() || plan.sql.find("latchkey.") == std::string::npos) continue;
    std::string& name = names[plan.sql];
    if (name.empty()) name = name_of(plan.sql);
    Most& most = seen[name];
    most.times += 1;
    most.rows = std::max(most.rows, plan.rows);
    most.pages = std::max(most.pages, plan.pages);
    const auto complain = [&](const std::string& what) {
      complaints.insert(where + ": " + name + " (" + plan.step + "): " + what + "\n    " + plan.sql + plan.outline);
    };
    for (const std::string& join : plan.joins)
      if (join != "Nested Loop") complain(join);
    for (const PlanScan& scan : plan.scans)
      if (scan.node == "Seq Scan" && kBig.contains(scan.table)) complain("reads all of " + scan.table);
    const double asked = asked_in(plan.step);
    if (is_walk(plan.step)) continue;
    if (plan.rows > kRowsMore + kRowsPerRun * asked)
      complain("reads " + std::to_string(static_cast<long>(plan.rows)) + " rows");
    // What is read of the catalogue for the first time counts too: only who reads rows is held to this.
    if (!plan.scans.empty() && plan.pages > kPagesMore + kPagesPerRun * asked)
      complain("touches " + std::to_string(static_cast<long>(plan.pages)) + " pages");
  }
  std::cout << where << ": times, rows, pages at most\n";
  for (const auto& [name, most] : seen)
    std::cout << "  " << most.times << "\t" << most.rows << "\t" << most.pages << "\t" << name << "\n";
  for (const std::string& complaint : complaints) ADD_FAILURE() << complaint;
  std::set<std::string> all;
  for (const auto& [name, most] : seen) all.insert(name);
  return all;
}

// Thousands of runs in every place, never analysed; others are copies of it.
void Plans::make_filled() {
  if (std::exchange(is_filled_, true)) return;
  make("history");
  fill("history", [](PlanFiller& filler) { filler.fill_history(kRows); });
  fill_rest("history");
  make("filled", "history");
  fill("filled", [](PlanFiller& filler) { filler.fill_blocks(kRows); });
}

TEST_F(Plans, OfTablesThatWereNeverAnalysed) {
  make_filled();
  make("fresh", "filled");
  ASSERT_EQ(client("fresh").ask_one("SELECT count(*) FROM pg_class WHERE relnamespace = 'latchkey'::regnamespace AND "
                                    "relkind = 'r' AND reltuples >= 0"),
            "0");
  check("fresh");
}

TEST_F(Plans, OfTablesThatWereAnalysed) {
  make_filled();
  make("analysed", "filled");
  client("analysed").execute("ANALYZE");
  check("analysed");
}

// What ANALYZE finds while somebody's snapshot keeps every dead row: a few live ones in thousands of pages.
TEST_F(Plans, OfAHotTableThatSeemsEmpty) {
  make_filled();
  make("bloated", "history");
  PgClient reader = client("bloated");
  reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM latchkey.job_runs");
  fill("bloated", [](PlanFiller& filler) { filler.churn_blocks(kRows); });
  PgClient hand = client("bloated");
  hand.execute("VACUUM latchkey.blocks");
  hand.execute("ANALYZE latchkey.blocks");
  EXPECT_LE(std::stod(hand.ask_one("SELECT reltuples FROM pg_class WHERE oid = 'latchkey.blocks'::regclass")), 10);
  EXPECT_GE(std::stod(hand.ask_one("SELECT relpages FROM pg_class WHERE oid = 'latchkey.blocks'::regclass")), 200);
  reader.execute("COMMIT");
  hand.execute("VACUUM (TRUNCATE false) latchkey.blocks");
  check("bloated");
}

TEST_F(Plans, OfTablesThatGrewAHundredfold) {
  make("grown");
  const auto fill_both = [&](int count) {
    fill("grown", [&](PlanFiller& filler) {
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

// A session keeps the plans of the functions that it has called: these were made when there was nothing.
TEST_F(Plans, OfFunctionsThatWereFirstCalledOnEmptyTables) {
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
    // One in the middle of a block.
    const std::string block = "b" + std::to_string(keys) + ".";
    enqueue_jobs(*store, jobs_of("block", 9, block));
    const auto taken = take_jobs(*store, {"block"}, 9);
    call("begin_run", "('block', '" + block + "4')");
    call("enqueue", "('sqljob', after => ARRAY['" + to_string(taken.at(4).run.id()) + "']::uuid[])");
    call("complete_run", "('" + to_string(taken.at(4).run.id()) + "', " +
                             std::to_string(static_cast<std::uint64_t>(taken[4].fence)) + ", 'done')");
  };
  for (int i = 0; i < 12; ++i) call_all();
  PlanFiller filler(*store);
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
