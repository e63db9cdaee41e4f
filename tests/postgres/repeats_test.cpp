// What changes nothing is answered from what is committed: a repeat does not wait until somebody else's job is, nor
// is it said twice when that fails.
#include <future>

#include "support/postgres/fault_proxy.hpp"
#include "support/postgres/pg_stores.hpp"
#include "support/sample_runs.hpp"

namespace latchkey {
namespace {

using namespace std::chrono_literals;

class PostgresRepeats : public PostgresStores {
 protected:
  using Replies = Result<std::vector<EnqueueReply>>;

  // Counts how often it is told.
  struct Ear {
    std::promise<Replies> told;
    std::future<Replies> answer = told.get_future();
    std::atomic<int> times{0};

    Done<std::vector<EnqueueReply>> done() {
      return [this](Replies replies) {
        if (times++ == 0) told.set_value(std::move(replies));
      };
    }
    // Once; its run, and whether that stood already.
    std::pair<RunId, bool> get() {
      const auto reply = std::get<Enqueued>(answer.get().value().front());
      return {reply.run.id(), reply.duplicate};
    }
    bool has_answer(Duration within) { return answer.wait_for(within) == std::future_status::ready; }
  };

  static EnqueueRequest job(const std::string& key) {
    EnqueueRequest request;
    request.function = "f";
    request.key = key;
    request.guard = Guard::once;
    request.key_hash = hash_key(request.tenant, request.function, key);
    return request;
  }
  RunId enqueue(const std::string& key) {
    Ear ear;
    store_->enqueue({job(key)}, ear.done());
    return ear.get().first;
  }
  // What is sent within is one batch: it comes while the store's only lane is telling of one before.
  void in_one_batch(ConnectionFault fault, const std::function<void()>& send, const std::string& before = "before") {
    std::promise<void> sent;
    store_->enqueue({job(before)}, [&](Replies replies) {
      EXPECT_TRUE(replies);
      proxy_.arm(fault);
      send();
      sent.set_value();
    });
    sent.get_future().wait();
  }
  void enqueue_together(const std::string& one, Ear& first, const std::string& other, Ear& second,
                        ConnectionFault fault, const std::string& before = "before") {
    in_one_batch(
        fault,
        [&] {
          store_->enqueue({job(one)}, first.done());
          store_->enqueue({job(other)}, second.done());
        },
        before);
  }
  static ClaimRequest claim(const std::string& key, std::uint8_t call) {
    ClaimRequest request{.function = "f", .key = key, .key_hash = hash_key("default", "f", key), .claim = id_of(call)};
    request.retry.retries = 3;
    return request;
  }
  std::string runs() { return PgClient(url()).ask_one("SELECT count(*) FROM latchkey.runs"); }

  FaultProxy proxy_{PgServer::instance().port()};
  std::unique_ptr<PostgresStore> store_ = open(proxy_.url(database()), {.writers = 1, .reply_max = 20s});
};

TEST_F(PostgresRepeats, DoNotWaitForAnothersCommit) {
  const RunId old = enqueue("old");
  Ear fresh, repeat;
  enqueue_together("new", fresh, "old", repeat, {.at = FaultAt::commit_answered, .how = FaultHow::swallow});
  ASSERT_TRUE(repeat.has_answer(10s));
  EXPECT_EQ(repeat.get(), std::pair(old, true));
  while (proxy_.fired() == 0) ASSERT_FALSE(fresh.has_answer(1ms)) << "its commit is not known";
  proxy_.cut_all();
  ASSERT_TRUE(fresh.has_answer(20s));
  EXPECT_FALSE(fresh.get().second);
  EXPECT_EQ(runs(), "3");
  store_.reset();
  EXPECT_EQ(fresh.times + repeat.times, 2);
}

// A repeat of what the same batch makes knows nothing that is committed.
TEST_F(PostgresRepeats, OfWhatIsNotCommittedYetWaitForIt) {
  Ear fresh, repeat;
  enqueue_together("new", fresh, "new", repeat, {.at = FaultAt::commit_answered, .how = FaultHow::swallow});
  while (proxy_.fired() == 0) ASSERT_FALSE(repeat.has_answer(1ms));
  EXPECT_FALSE(repeat.has_answer(100ms));
  proxy_.cut_all();
  ASSERT_TRUE(repeat.has_answer(20s));
  EXPECT_EQ(repeat.get(), std::pair(fresh.get().first, true));
  EXPECT_EQ(runs(), "2");
}

TEST_F(PostgresRepeats, AreToldOnceWhateverBecomesOfTheBatch) {
  const RunId old = enqueue("old");
  int nth = 0;
  for (const FaultAt at : {FaultAt::flight_asked, FaultAt::commit_asked, FaultAt::commit_answered, FaultAt::trip_asked})
    for (const FaultHow how : {FaultHow::close, FaultHow::reset}) {
      Ear fresh, repeat;
      ++nth;
      enqueue_together("new" + std::to_string(nth), fresh, "old", repeat, {.at = at, .how = how},
                       "before" + std::to_string(nth));
      ASSERT_TRUE(repeat.has_answer(20s) && fresh.has_answer(20s)) << nth;
      EXPECT_EQ(repeat.get(), std::pair(old, true)) << nth;
      EXPECT_FALSE(fresh.get().second) << nth;
      enqueue("after" + std::to_string(nth));
      EXPECT_EQ(fresh.times + repeat.times, 2) << nth;
      EXPECT_EQ(proxy_.fired(), static_cast<std::uint64_t>(nth));
    }
  EXPECT_EQ(runs(), std::to_string(3 * nth + 1));
}

// The one before is a repeat, too: the fault strikes a batch of which nothing is left to be answered.
TEST_F(PostgresRepeats, OfWhichABatchConsistsAreToldThoughItFails) {
  const RunId old = enqueue("old");
  for (const FaultHow how : {FaultHow::close, FaultHow::reset}) {
    Ear fresh, repeat;
    enqueue_together("new", fresh, "old", repeat, {.at = FaultAt::commit_asked, .how = how}, "old");
    EXPECT_EQ(repeat.get(), std::pair(old, true));
    EXPECT_EQ(fresh.get().second, how == FaultHow::reset) << "the second time it is there";
  }
  EXPECT_EQ(proxy_.fired(), 2u);
  EXPECT_EQ(runs(), "2");
}

// The second asks for another key first, and so comes to its own when the first has been written.
TEST_F(PostgresRepeats, OfWhatWasWrittenARoundBeforeWaitForItsCommit) {
  std::promise<Result<ClaimReply>> first, second;
  auto answer = second.get_future();
  in_one_batch({.at = FaultAt::commit_answered, .how = FaultHow::swallow}, [&] {
    store_->claim(claim("k", 1), [&](Result<ClaimReply> reply) { first.set_value(std::move(reply)); });
    ClaimRequest other = claim("k", 2);
    other.key_before = "earlier";
    other.key_before_hash = hash_key("default", "f", "earlier");
    store_->claim(std::move(other), [&](Result<ClaimReply> reply) { second.set_value(std::move(reply)); });
  });
  while (proxy_.fired() == 0) ASSERT_NE(answer.wait_for(1ms), std::future_status::ready);
  EXPECT_NE(answer.wait_for(100ms), std::future_status::ready);
  proxy_.cut_all();
  EXPECT_TRUE(std::holds_alternative<Won>(first.get_future().get().value()));
  EXPECT_TRUE(std::holds_alternative<Busy>(answer.get().value()));
}

}  // namespace
}  // namespace latchkey
