// A unique index ensures that a generation of a run is settled once, also if other tables are inconsistent.
#include <gmock/gmock.h>

#include <future>

#include "conformance/store_test.hpp"
#include "support/postgres/pg_stores.hpp"

namespace latchkey {
namespace {

class PostgresSettlements : public PostgresStores {
 protected:
  std::vector<Taken> take_new(std::uint32_t count) {
    std::vector<EnqueueRequest> jobs(count);
    for (EnqueueRequest& job : jobs) job.function = "f", job.retry.retries = 0;
    Verbs(*store_).enqueue_all(std::move(jobs));
    return Verbs(*store_).take({.functions = {"f"}, .limit = count, .session = id_of(1), .lease = 1min});
  }
  static SettleRequest completion(const Taken& taken, Bytes result) {
    return {.id = taken.run.id(), .fence = taken.fence, .ending = Complete{std::move(result), {}}};
  }
  static SettleRequest failure(const Taken& taken) {
    return {.id = taken.run.id(), .fence = taken.fence, .ending = Fail{.message = "no", .retryable = false}};
  }
  SettleReply settle(SettleRequest request) {
    std::vector<SettleRequest> all;
    all.push_back(std::move(request));
    return Verbs(*store_).settle_all(std::move(all)).front();
  }
  std::string refusal(SettleRequest request) {
    try {
      settle(std::move(request));
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "none";
  }
  std::string result_of(const Taken& taken) {
    return admin_.ask_one("SELECT convert_from(result, 'UTF8') FROM latchkey.all_states WHERE seq = " +
                          std::to_string(uuid_counter(taken.run.id())));
  }
  // Completes runs with the result "first", then restores their block.
  std::vector<Taken> settle_and_restore(std::uint32_t count) {
    auto taken = take_new(count);
    admin_.execute("CREATE TABLE public.before AS SELECT * FROM latchkey.blocks");
    for (const Taken& one : taken) EXPECT_TRUE(std::get<Settled>(settle(completion(one, "first"))).changed);
    EXPECT_EQ(admin_.ask_one("SELECT count(*) FROM latchkey.blocks"), "0");
    admin_.execute("INSERT INTO latchkey.blocks SELECT * FROM public.before; DROP TABLE public.before");
    return taken;
  }
  std::string entries() { return admin_.ask_one("SELECT count(*) FROM latchkey.settlements"); }

  ManualClock time_{kNoon};
  std::unique_ptr<PostgresStore> store_ = open(url(), {.writers = 1, .clock = &time_});
  PgClient admin_{url()};
};
constexpr const char* kRefusal =
    "STORE_UNAVAILABLE: the run is open but has a settlement: the database is inconsistent; nothing was changed";

// Settles runs of blocks, with rows of their own, with failures, and in later generations. PgServer::give_back() checks
// the content of the table after every test.
TEST_F(PostgresSettlements, EverySettlementInsertsOneRow) {
  const auto taken = take_new(6);
  ASSERT_EQ(taken.size(), 6u);
  EXPECT_EQ(entries(), "0");
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(std::get<Settled>(settle(completion(taken[i], "r"))).changed);
  EXPECT_EQ(entries(), "3");
  ASSERT_TRUE(std::get<Settled>(settle(failure(taken[3]))).changed);
  EXPECT_EQ(entries(), "4");
  EXPECT_EQ(PgServer::find_contradiction(admin_), "");
  ASSERT_TRUE(std::get<Moved>(Verbs(*store_).move({std::nullopt, taken[3].run.id(), RetryByHand{}})).changed);
  EXPECT_EQ(entries(), "4") << "the retry removed a settlement";
  const auto again = Verbs(*store_).take({.functions = {"f"}, .limit = 1, .session = id_of(1), .lease = 1min});
  ASSERT_EQ(again.size(), 1u);
  ASSERT_TRUE(std::get<Settled>(settle(completion(again[0], "r"))).changed);
  EXPECT_EQ(
      admin_.ask_one("SELECT string_agg(generation::text, ' ' ORDER BY generation) FROM latchkey.settlements WHERE "
                     "seq = " +
                     std::to_string(uuid_counter(again[0].run.id()))),
      "1 2");
}

// The check of every test's database finds a run with its state in two tables.
TEST_F(PostgresSettlements, RunInTwoTablesIsFound) {
  const auto taken = take_new(5);
  const std::string lo = admin_.ask_one("SELECT lo FROM latchkey.blocks");
  ASSERT_EQ(PgServer::find_contradiction(admin_), "");
  const auto expect_found = [&](const std::string& made, const std::string& found) {
    admin_.execute("BEGIN; " + made);
    EXPECT_THAT(PgServer::find_contradiction(admin_), ::testing::HasSubstr(found)) << made;
    admin_.execute("ROLLBACK");
  };
  const std::string last = std::to_string(std::stol(lo) + 4), inside = std::to_string(std::stol(lo) + 2);
  const std::string block = "INSERT INTO latchkey.blocks (lo, hi, tenant, function, priority, due) VALUES (";
  expect_found(block + last + ", " + last + " + 3, 'default', 'f', 0, 0)", " overlap block " + lo + " to " + last);
  expect_found(block + lo + " - 1, " + lo + ", 'default', 'f', 0, 0)", "block " + lo + " to " + last + " overlap ");
  expect_found("INSERT INTO latchkey.outcomes VALUES (" + inside + ", " + inside + ", 'default', 1, 0, 1)",
               "outcome " + inside + " to " + inside + " overlap block " + lo);
  // A failed attempt moves the run from the block to a row.
  admin_.execute("CREATE TABLE public.before AS SELECT * FROM latchkey.blocks");
  ASSERT_TRUE(std::get<Settled>(settle(failure(taken[2]))).changed);
  EXPECT_EQ(PgServer::find_contradiction(admin_), "");
  expect_found("DELETE FROM latchkey.blocks; INSERT INTO latchkey.blocks SELECT * FROM public.before",
               "row " + inside + " to " + inside + " overlap block " + lo);
  admin_.execute("DROP TABLE public.before");
  EXPECT_EQ(PgServer::find_contradiction(admin_), "");
}

// Simulates a partly restored backup: the block states that its runs are running. Without the index their owner could
// settle them again.
TEST_F(PostgresSettlements, InconsistentRunIsNotResettled) {
  const auto taken = settle_and_restore(3);
  // A consistent run is settled in the same batch: both calls are made in a callback of the store's only writer.
  const auto sound = take_new(2);
  std::promise<Result<std::vector<SettleReply>>> bad, good;
  store_->settle({completion(sound[0], "sound")}, [&](auto) {
    store_->settle({completion(taken[0], "second")}, [&](auto replies) { bad.set_value(std::move(replies)); });
    store_->settle({completion(sound[1], "sound")}, [&](auto replies) { good.set_value(std::move(replies)); });
  });
  auto refused = bad.get_future();
  ASSERT_EQ(refused.wait_for(5s), std::future_status::ready) << "the store retried until its time limit";
  EXPECT_EQ(to_string(refused.get().error()), kRefusal);
  EXPECT_TRUE(std::get<Settled>(good.get_future().get().value().front()).changed);
  for (const Taken& one : taken) EXPECT_EQ(refusal(completion(one, "second")), kRefusal);
  for (const Taken& one : taken) EXPECT_EQ(result_of(one), "first");
  EXPECT_EQ(result_of(sound[1]), "sound");
  EXPECT_EQ(entries(), "5");
  admin_.execute("DELETE FROM latchkey.blocks");
}

// A call with an inconsistent run settles its other runs.
TEST_F(PostgresSettlements, InconsistentRunBlocksNoOther) {
  const auto bad = settle_and_restore(2);
  const auto sound = take_new(2);
  const auto replies = Verbs(*store_).settle_all({completion(sound[0], "sound"), completion(bad[0], "second")});
  EXPECT_TRUE(std::get<Settled>(replies[0]).changed);
  EXPECT_EQ(to_string(std::get<Error>(replies[1])), kRefusal);
  // The sweep expires the leases of other runs.
  time_.advance(2min);
  EXPECT_EQ(Verbs(*store_).sweep(100).changed, 1u);
  EXPECT_EQ(admin_.ask_one("SELECT count(*) FROM latchkey.dead_letter_members"), "1");
  for (const Taken& one : bad) EXPECT_EQ(result_of(one), "first");
  admin_.execute("DELETE FROM latchkey.blocks");
}

// A claim that ends a generation and starts the next one inserts the settlement of the ended generation.
TEST_F(PostgresSettlements, ClaimSettlesExpiredGeneration) {
  ClaimRequest claim{.function = "f", .key = "k", .key_hash = hash_key("default", "f", "k"), .lease = 1min};
  claim.retry.retries = 0;
  claim.claim = id_of(1);
  ASSERT_TRUE(std::holds_alternative<Won>(Verbs(*store_).claim(claim)));
  time_.advance(2min);
  claim.claim = id_of(2);
  const auto again = Verbs(*store_).claim(claim);
  ASSERT_EQ(std::get<Won>(again).run.generation, 2u);
  EXPECT_EQ(admin_.ask_one("SELECT string_agg(generation::text, ' ') FROM latchkey.settlements"), "1");
}

}  // namespace
}  // namespace latchkey
