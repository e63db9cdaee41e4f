// Replies without a change depend on committed data only: a repeat does not wait for another job's commit, and gets one
// reply if that commit fails.
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

  // Receives the reply of a call and counts its replies.
  struct ReplyProbe {
    std::promise<Replies> promise;
    std::future<Replies> answer = promise.get_future();
    std::atomic<int> times{0};

    Done<std::vector<EnqueueReply>> done() {
      return [this](Replies replies) {
        if (times++ == 0) promise.set_value(std::move(replies));
      };
    }
    // The run's id, and whether the request was a duplicate. Call it once.
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
    ReplyProbe ear;
    store_->enqueue({job(key)}, ear.done());
    return ear.get().first;
  }
  // The requests of `send` share a batch: `send` runs in a callback of the store's only writer.
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
  void enqueue_together(const std::string& one, ReplyProbe& first, const std::string& other, ReplyProbe& second,
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

TEST_F(PostgresRepeats, ReplyDoesNotWaitForOtherCommits) {
  const RunId old = enqueue("old");
  ReplyProbe fresh, repeat;
  enqueue_together("new", fresh, "old", repeat, {.at = FaultAt::commit_reply, .how = FaultHow::blackhole});
  ASSERT_TRUE(repeat.has_answer(10s));
  EXPECT_EQ(repeat.get(), std::pair(old, true));
  while (proxy_.fired() == 0) ASSERT_FALSE(fresh.has_answer(1ms)) << "the commit is unknown";
  proxy_.cut_all();
  ASSERT_TRUE(fresh.has_answer(20s));
  EXPECT_FALSE(fresh.get().second);
  EXPECT_EQ(runs(), "3");
  store_.reset();
  EXPECT_EQ(fresh.times + repeat.times, 2);
}

// The batch creates the run that it repeats, so the reply does not depend on committed data only.
TEST_F(PostgresRepeats, RepeatOfUncommittedRunWaits) {
  ReplyProbe fresh, repeat;
  enqueue_together("new", fresh, "new", repeat, {.at = FaultAt::commit_reply, .how = FaultHow::blackhole});
  while (proxy_.fired() == 0) ASSERT_FALSE(repeat.has_answer(1ms));
  EXPECT_FALSE(repeat.has_answer(100ms));
  proxy_.cut_all();
  ASSERT_TRUE(repeat.has_answer(20s));
  EXPECT_EQ(repeat.get(), std::pair(fresh.get().first, true));
  EXPECT_EQ(runs(), "2");
}

TEST_F(PostgresRepeats, OneReplyAlsoIfTheBatchFails) {
  const RunId old = enqueue("old");
  int nth = 0;
  for (const FaultAt at :
       {FaultAt::flight_request, FaultAt::commit_request, FaultAt::commit_reply, FaultAt::trip_request})
    for (const FaultHow how : {FaultHow::close, FaultHow::reset}) {
      ReplyProbe fresh, repeat;
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

// The earlier call is a repeat, too: the fault occurs in a batch that has sent all its replies.
TEST_F(PostgresRepeats, RepeatsGetRepliesIfTheirBatchFails) {
  const RunId old = enqueue("old");
  for (const FaultHow how : {FaultHow::close, FaultHow::reset}) {
    ReplyProbe fresh, repeat;
    enqueue_together("new", fresh, "old", repeat, {.at = FaultAt::commit_request, .how = how}, "old");
    EXPECT_EQ(repeat.get(), std::pair(old, true));
    EXPECT_EQ(fresh.get().second, how == FaultHow::reset) << "the run exists in the second round";
  }
  EXPECT_EQ(proxy_.fired(), 2u);
  EXPECT_EQ(runs(), "2");
}

// The second claim checks an earlier key first, so it reaches its own key in a later round than the first claim.
TEST_F(PostgresRepeats, RepeatOfEarlierRoundWaits) {
  std::promise<Result<ClaimReply>> first, second;
  auto answer = second.get_future();
  in_one_batch({.at = FaultAt::commit_reply, .how = FaultHow::blackhole}, [&] {
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
