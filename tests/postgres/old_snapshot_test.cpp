// A session reads `job_runs` and has its snapshot open for long, so VACUUM cannot remove dead rows. The pages that a
// take and a settle access must not grow with the number of dead rows.
#include <gtest/gtest.h>

#include <iostream>
#include <map>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "migrate/open_postgres.hpp"
#include "support/postgres/query_plan_driver.hpp"
#include "support/postgres/query_plan_log.hpp"

namespace latchkey {
namespace {

constexpr int kRounds = 6, kDeadInRound = 2000, kJobs = 20, kSingles = 250;
// Allows for page splits and higher indexes.
constexpr double kExtraPages = 10;

// A store scans all due jobs once a second, and otherwise from its mark. This clock never advances, so the store scans
// from its mark after the first take.
class FrozenClock final : public Clock {
 public:
  Instant now() override { return system_.now(); }
  Duration elapsed() override { return {}; }
  Task<void> wait(Duration span) override { return system_.wait(span); }

 private:
  SystemClock system_;
};

class OldSnapshot : public ::testing::Test {
 protected:
  std::unique_ptr<PostgresStore> open(const std::string& url, Clock& clock) {
    PostgresSettings settings;
    settings.url = url;
    settings.writers = 1;
    auto opened = migrate::open_postgres(std::move(settings), clock, random_);
    if (!opened) throw std::runtime_error(to_string(opened.error()));
    return std::move(*opened);
  }
  // The accessed pages by step and statement.
  std::map<std::string, double> measure() {
    std::map<std::string, double> pages;
    for (const QueryPlan& plan : log_.read()) {
      if (plan.step.empty() || plan.scans.empty()) continue;
      double& most = pages[plan.step + ": " + plan.sql];
      most = std::max(most, plan.pages);
    }
    return pages;
  }

  SystemClock clock_;
  FrozenClock frozen_;
  SystemRandom random_;
  QueryPlanLog log_;
};

TEST_F(OldSnapshot, DeadBlocksDoNotSlowJobs) {
  const auto busy = open(log_.quiet_url("postgres"), clock_);
  const auto store = open(log_.url("postgres"), frozen_);
  TableFiller filler(*busy);
  PgClient reader(log_.quiet_url("postgres"));
  reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM latchkey.job_runs");
  std::map<std::string, std::vector<double>> rounds;
  for (int round = 0; round < kRounds; ++round) {
    filler.churn_blocks(kDeadInRound);
    // The pause puts the dead rows before the mark, which is slightly in the past because of late commits. ANALYZE runs
    // as autovacuum would: the query plans differ once PostgreSQL knows that few rows are alive.
    PgClient(log_.quiet_url("postgres")).execute("SELECT pg_sleep(0.3); ANALYZE");
    enqueue_jobs(*store, jobs_of("work", kJobs));
    settle_jobs(*store, take_jobs(*store, {"work"}, kJobs), Complete{"", {}});
    log_.announce("enqueue");
    enqueue_jobs(*store, jobs_of("work", kJobs));
    log_.announce("take");
    const auto taken = take_jobs(*store, {"work"}, kJobs);
    ASSERT_EQ(taken.size(), std::size_t{kJobs});
    log_.announce("settle");
    settle_jobs(*store, taken, Complete{"", {}});
    log_.announce("take nothing");
    EXPECT_TRUE(take_jobs(*store, {"work"}, kJobs).empty());
    // Jobs that do not share a block.
    log_.announce("enqueue singles");
    enqueue_jobs(*store, single_jobs_of("single", "other", kSingles));
    log_.announce("take singles");
    const auto singles = take_jobs(*store, {"single"}, kSingles);
    ASSERT_EQ(singles.size(), std::size_t{kSingles});
    log_.announce("settle singles");
    settle_jobs(*store, singles, Complete{"", {}});
    log_.announce("");
    settle_jobs(*store, take_jobs(*store, {"other"}, kSingles), Complete{"", {}});
    log_.announce("sweep");
    await<Swept>([&](auto done) { store->sweep(100, std::move(done)); });
    for (const auto& [what, pages] : measure()) rounds[what].push_back(pages);
  }
  for (const auto& [what, pages] : rounds) {
    for (const double count : pages) std::cout << count << "\t";
    std::cout << what.substr(0, 300) << "\n";
    // Only the deadline poll and sweeps query the next deadline; no batch of jobs waits for it.
    if (what.find("SELECT least(") != std::string::npos) continue;
    EXPECT_LE(pages.back(), pages.front() + kExtraPages)
        << what << "\nafter " << kDeadInRound << " more dead rows per round";
  }
  EXPECT_GE(rounds.size(), 8u);
  reader.execute("COMMIT");
}

}  // namespace
}  // namespace latchkey
