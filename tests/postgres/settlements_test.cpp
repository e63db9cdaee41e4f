// A generation of a run is settled once because an index says so: whatever else the database holds of the run.
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
    return hand_.ask_one("SELECT convert_from(result, 'UTF8') FROM latchkey.all_states WHERE seq = " +
                         std::to_string(uuid_counter(taken.run.id())));
  }
  // Completed with "first"; then their block is put back.
  std::vector<Taken> settle_and_restore(std::uint32_t count) {
    auto taken = take_new(count);
    hand_.execute("CREATE TABLE public.before AS SELECT * FROM latchkey.blocks");
    for (const Taken& one : taken) EXPECT_TRUE(std::get<Settled>(settle(completion(one, "first"))).changed);
    EXPECT_EQ(hand_.ask_one("SELECT count(*) FROM latchkey.blocks"), "0");
    hand_.execute("INSERT INTO latchkey.blocks SELECT * FROM public.before; DROP TABLE public.before");
    return taken;
  }
  std::string entries() { return hand_.ask_one("SELECT count(*) FROM latchkey.settlements"); }

  ManualClock story_{kNoon};
  std::unique_ptr<PostgresStore> store_ = open(url(), {.writers = 1, .clock = &story_});
  PgClient hand_{url()};
};
constexpr const char* kRefusal =
    "STORE_UNAVAILABLE: the run is open but has a settlement: the database is inconsistent; nothing was changed";

// Ranges, rows, failures and later generations. That they are the right ones, and none of a run that is gone, is asked
// when the database is given back, here and by every other test.
TEST_F(PostgresSettlements, EveryEndingLeavesOne) {
  const auto taken = take_new(6);
  ASSERT_EQ(taken.size(), 6u);
  EXPECT_EQ(entries(), "0");
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(std::get<Settled>(settle(completion(taken[i], "r"))).changed);
  EXPECT_EQ(entries(), "3");
  ASSERT_TRUE(std::get<Settled>(settle(failure(taken[3]))).changed);
  EXPECT_EQ(entries(), "4");
  EXPECT_EQ(PgServer::find_contradiction(hand_), "");
  ASSERT_TRUE(std::get<Moved>(Verbs(*store_).move({std::nullopt, taken[3].run.id(), RetryByHand{}})).changed);
  EXPECT_EQ(entries(), "4") << "opened again";
  const auto again = Verbs(*store_).take({.functions = {"f"}, .limit = 1, .session = id_of(1), .lease = 1min});
  ASSERT_EQ(again.size(), 1u);
  ASSERT_TRUE(std::get<Settled>(settle(completion(again[0], "r"))).changed);
  EXPECT_EQ(
      hand_.ask_one("SELECT string_agg(generation::text, ' ' ORDER BY generation) FROM latchkey.settlements WHERE "
                    "seq = " +
                    std::to_string(uuid_counter(again[0].run.id()))),
      "1 2");
}

// What is asked of every test's database finds it.
TEST_F(PostgresSettlements, ARunInTwoPlacesIsFound) {
  const auto taken = take_new(5);
  const std::string lo = hand_.ask_one("SELECT lo FROM latchkey.blocks");
  ASSERT_EQ(PgServer::find_contradiction(hand_), "");
  const auto expect_found = [&](const std::string& made, const std::string& found) {
    hand_.execute("BEGIN; " + made);
    EXPECT_THAT(PgServer::find_contradiction(hand_), ::testing::HasSubstr(found)) << made;
    hand_.execute("ROLLBACK");
  };
  const std::string last = std::to_string(std::stol(lo) + 4), inside = std::to_string(std::stol(lo) + 2);
  const std::string block = "INSERT INTO latchkey.blocks (lo, hi, tenant, function, priority, due) VALUES (";
  expect_found(block + last + ", " + last + " + 3, 'default', 'f', 0, 0)", " overlap block " + lo + " to " + last);
  expect_found(block + lo + " - 1, " + lo + ", 'default', 'f', 0, 0)", "block " + lo + " to " + last + " overlap ");
  expect_found("INSERT INTO latchkey.outcomes VALUES (" + inside + ", " + inside + ", 'default', 1, 0, 1)",
               "outcome " + inside + " to " + inside + " overlap block " + lo);
  // Its row, from where it is put when its try fails.
  hand_.execute("CREATE TABLE public.before AS SELECT * FROM latchkey.blocks");
  ASSERT_TRUE(std::get<Settled>(settle(failure(taken[2]))).changed);
  EXPECT_EQ(PgServer::find_contradiction(hand_), "");
  expect_found("DELETE FROM latchkey.blocks; INSERT INTO latchkey.blocks SELECT * FROM public.before",
               "row " + inside + " to " + inside + " overlap block " + lo);
  hand_.execute("DROP TABLE public.before");
  EXPECT_EQ(PgServer::find_contradiction(hand_), "");
}

// As a backup that was restored in part would leave it: the block says that its runs are running. Who holds it might
// settle them again, were it not for the index.
TEST_F(PostgresSettlements, ARunThatIsSettledAndLiesElsewhereIsNotSettledAgain) {
  const auto taken = settle_and_restore(3);
  // Beside another that has nothing to do with it: in one batch with the first, which comes while the store's only lane
  // is telling of one before.
  const auto sound = take_new(2);
  std::promise<Result<std::vector<SettleReply>>> bad, good;
  store_->settle({completion(sound[0], "sound")}, [&](auto) {
    store_->settle({completion(taken[0], "second")}, [&](auto replies) { bad.set_value(std::move(replies)); });
    store_->settle({completion(sound[1], "sound")}, [&](auto replies) { good.set_value(std::move(replies)); });
  });
  auto refused = bad.get_future();
  ASSERT_EQ(refused.wait_for(5s), std::future_status::ready) << "it is not tried until patience ends";
  EXPECT_EQ(to_string(refused.get().error()), kRefusal);
  EXPECT_TRUE(std::get<Settled>(good.get_future().get().value().front()).changed);
  for (const Taken& one : taken) EXPECT_EQ(refusal(completion(one, "second")), kRefusal);
  for (const Taken& one : taken) EXPECT_EQ(result_of(one), "first");
  EXPECT_EQ(result_of(sound[1]), "sound");
  EXPECT_EQ(entries(), "5");
  hand_.execute("DELETE FROM latchkey.blocks");
}

// Of many that are settled at once it is left out, and the others are not.
TEST_F(PostgresSettlements, SuchARunKeepsNobodyFromWhatIsDoneWithIt) {
  const auto bad = settle_and_restore(2);
  const auto sound = take_new(2);
  const auto replies = Verbs(*store_).settle_all({completion(sound[0], "sound"), completion(bad[0], "second")});
  EXPECT_TRUE(std::get<Settled>(replies[0]).changed);
  EXPECT_EQ(to_string(std::get<Error>(replies[1])), kRefusal);
  // Nor are others' leases kept from ending.
  story_.advance(2min);
  EXPECT_EQ(Verbs(*store_).sweep(100).changed, 1u);
  EXPECT_EQ(hand_.ask_one("SELECT count(*) FROM latchkey.dead_letter_members"), "1");
  for (const Taken& one : bad) EXPECT_EQ(result_of(one), "first");
  hand_.execute("DELETE FROM latchkey.blocks");
}

// A claim that ends the generation before its own in one go leaves an entry for that one, too.
TEST_F(PostgresSettlements, AGenerationThatEndsAsTheNextBeginsHasItsOwn) {
  ClaimRequest claim{.function = "f", .key = "k", .key_hash = hash_key("default", "f", "k"), .lease = 1min};
  claim.retry.retries = 0;
  claim.claim = id_of(1);
  ASSERT_TRUE(std::holds_alternative<Won>(Verbs(*store_).claim(claim)));
  story_.advance(2min);
  claim.claim = id_of(2);
  const auto again = Verbs(*store_).claim(claim);
  ASSERT_EQ(std::get<Won>(again).run.generation, 2u);
  EXPECT_EQ(hand_.ask_one("SELECT string_agg(generation::text, ' ') FROM latchkey.settlements"), "1");
}

}  // namespace
}  // namespace latchkey
