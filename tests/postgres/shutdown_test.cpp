// A store closes while its server does not respond: the close ends within its limit, every call gets a reply, and each
// reply is correct.
#include <gmock/gmock.h>

#include "conformance/store_test.hpp"
#include "support/postgres/fault_proxy.hpp"
#include "support/postgres/pg_other_session.hpp"
#include "support/postgres/pg_stores.hpp"
#include "support/wait_until.hpp"

namespace latchkey {
namespace {

using ::testing::HasSubstr;

// All other limits are much longer than the tests.
PostgresSettings settings(Duration close_max) {
  return {.writers = 2, .readers = 2, .patience = 10min, .reply_max = 10min, .close_max = close_max};
}
constexpr Duration kSlack = 10s;
constexpr const char* kUnknown = "commit status unknown";
constexpr const char* kUnchanged = "nothing was changed";

class PostgresShutdown : public PostgresStores {
 protected:
  using Claim = std::future<Result<ClaimReply>>;

  ~PostgresShutdown() override {
    proxy_.cut_all();  // so that a store that waits forever can be closed
  }
  Claim claim(const std::string& key) {
    auto promise = std::make_shared<std::promise<Result<ClaimReply>>>();
    auto answer = promise->get_future();
    store_->claim(a_claim(key), [promise](Result<ClaimReply> reply) { promise->set_value(std::move(reply)); });
    return answer;
  }
  // Sends a claim whose connection stops responding at this point.
  Claim claim_with_blackhole(const std::string& key, FaultAt at) {
    proxy_.arm(ConnectionFault{at, FaultHow::blackhole});
    Claim claimed = claim(key);
    while (proxy_.fired() == 0 && claimed.wait_for(1ms) != std::future_status::ready) {
    }
    EXPECT_EQ(proxy_.fired(), 1u) << "the fault did not occur";
    return claimed;
  }
  // `round` returns its error, if any. A connection without a reply times out after a second. If the machine stalled
  // for that long, which the other session shows, the round is repeated.
  void expect_no_error(auto round) {
    for (int i = 0; i < 20; ++i) {
      OtherSession other_session(url(), clock_);
      const std::optional<Error> error = round(std::to_string(i));
      if (!error) return;
      ASSERT_GT(other_session.finish(), 300ms) << to_string(*error);
      store_.reset();
    }
    ADD_FAILURE() << "the machine stalled in every round";
  }
  template <class T>
  static std::optional<Error> error_of(const Result<T>& result) {
    return result ? std::nullopt : std::optional(result.error());
  }
  static void expect_unavailable(Claim& claimed, const char* detail) {
    ASSERT_EQ(claimed.wait_for(0s), std::future_status::ready) << "the call got no reply";
    const auto reply = claimed.get();
    ASSERT_FALSE(reply) << "the store cannot know that the call succeeded";
    EXPECT_EQ(reply.error().code, Code::STORE_UNAVAILABLE);
    EXPECT_THAT(reply.error().detail, HasSubstr(detail));
  }
  bool is_there(const std::string& key) {
    return other_->find_latest({"default", "f", key, hash_key("default", "f", key)}).value().has_value();
  }

  FaultProxy proxy_{PgServer::instance().port()};
  std::unique_ptr<Store> store_;
  std::unique_ptr<Store> other_ = open(url());
};

class ShutdownDuringCommit : public PostgresShutdown, public testing::WithParamInterface<FaultAt> {};
INSTANTIATE_TEST_SUITE_P(Where, ShutdownDuringCommit, testing::Values(FaultAt::commit_request, FaultAt::commit_reply),
                         [](const auto& at) { return at.param == FaultAt::commit_request ? "before_it" : "after_it"; });

TEST_P(ShutdownDuringCommit, EveryCallGetsReplyInTime) {
  store_ = open(proxy_.url(database()), settings(1s));
  ASSERT_TRUE(store_->list({}));
  Claim unknown = claim_with_blackhole("unknown", GetParam());
  proxy_.blackhole_all();
  // One claim for the other writer; further claims are queued.
  Claim begun = claim("begun");
  ASSERT_TRUE(wait_until([this] { return proxy_.blackholed() > 0; })) << "the second claim was not sent";
  std::vector<Claim> waiting;
  for (int i = 0; i < 10; ++i) waiting.push_back(claim("waiting" + std::to_string(i)));
  // Two reads have connections; the others wait for one.
  std::vector<std::future<Result<Page>>> reads;
  for (int i = 0; i < 6; ++i) reads.push_back(std::async(std::launch::async, [this] { return store_->list({}); }));
  ASSERT_TRUE(wait_until([this] { return proxy_.blackholed() >= 3; })) << "no read was sent";

  const Duration start = clock_.elapsed();
  store_->begin_shutdown();
  for (auto& read : reads) {
    ASSERT_EQ(read.wait_for(kPatience), std::future_status::ready) << "the read waits forever";
    EXPECT_EQ(read.get().error().code, Code::STORE_UNAVAILABLE);
  }
  store_.reset();
  EXPECT_LT(clock_.elapsed() - start, 1s + kSlack);

  expect_unavailable(unknown, kUnknown);
  expect_unavailable(begun, kUnchanged);
  for (Claim& one : waiting) expect_unavailable(one, kUnchanged);
  proxy_.cut_all();
  EXPECT_EQ(is_there("unknown"), GetParam() == FaultAt::commit_reply);
  EXPECT_FALSE(is_there("begun"));
  EXPECT_FALSE(is_there("waiting0"));
}

// Only one connection is half-open: the store resolves the unknown commit on another connection.
TEST_P(ShutdownDuringCommit, UnknownCommitIsResolved) {
  store_ = open(proxy_.url(database()), settings(8s));
  Claim claimed = claim_with_blackhole("k", GetParam());
  const Duration start = clock_.elapsed();
  store_.reset();
  EXPECT_LT(clock_.elapsed() - start, 8s + kSlack);
  const auto reply = claimed.get();
  ASSERT_TRUE(reply) << to_string(reply.error());
  const Won won = std::get<Won>(*reply);
  EXPECT_EQ(other_->find({}, won.run.id()).value()->fence, won.fence);
  EXPECT_EQ(other_->list({}).value().runs.size(), 1u);
}

// With a responding server, the store works until it is closed.
TEST_F(PostgresShutdown, StoreRepliesUntilItCloses) {
  store_ = open(url(), settings(1min));
  store_->begin_shutdown();
  EXPECT_TRUE(std::holds_alternative<Won>(Verbs(*store_).claim(a_claim("k"))));
  EXPECT_EQ(store_->list({}).value().runs.size(), 1u);
  Claim last = claim("last");
  const Duration start = clock_.elapsed();
  store_->begin_shutdown();
  store_.reset();
  EXPECT_LT(clock_.elapsed() - start, 20s) << "the close waited for its limit";
  EXPECT_TRUE(last.get());
}

// The limit of the shutdown is over, but the server responds: the store still executes calls, because a request with a
// large body may arrive late, and pending counts are written last.
TEST_F(PostgresShutdown, RespondingServerIsUsedAfterLimit) {
  expect_no_error([this](const std::string& round) -> std::optional<Error> {
    store_ = open(url(), settings(200ms));
    store_->begin_shutdown();
    const Duration start = clock_.elapsed();
    std::uint32_t i = 0;
    do {
      const auto claimed = claim(round + ":" + std::to_string(++i)).get();
      if (!claimed) return claimed.error();
      const Won won = std::get<Won>(*claimed);
      const auto settled = await_result<std::vector<SettleReply>>([&](auto done) {
        store_->settle({SettleRequest{{}, won.run.id(), won.fence, Complete{"r", {}}}}, std::move(done));
      });
      if (!settled) return settled.error();
      const auto found = store_->find({}, won.run.id());
      if (!found) return found.error();
    } while (clock_.elapsed() - start < 1500ms);
    Claim last = claim(round + ":last");
    store_.reset();
    return error_of(last.get());
  });
}

// The store waits for a reply that arrives shortly after the limit.
TEST_F(PostgresShutdown, ShortDelayAfterLimitIsAllowed) {
  expect_no_error([this](const std::string& round) -> std::optional<Error> {
    proxy_.slow_all(0ms);
    store_ = open(proxy_.url(database()), settings(200ms));
    EXPECT_TRUE(claim(round + ":first").get());
    proxy_.slow_all(150ms);
    Claim claimed = claim(round + ":k");
    auto read = std::async(std::launch::async, [this] { return store_->list({}); });
    store_->begin_shutdown();
    const auto unclaimed = error_of(claimed.get());
    const auto unread = error_of(read.get());
    return unclaimed ? unclaimed : unread;
  });
}

// The server stops responding after the limit: one timeout ends all queued calls.
TEST_F(PostgresShutdown, SilenceAfterLimitRejectsAllCalls) {
  PostgresSettings one_by_one = settings(200ms);
  one_by_one.batch = 1;
  store_ = open(proxy_.url(database()), one_by_one);
  store_->begin_shutdown();
  const Duration start = clock_.elapsed();
  while (clock_.elapsed() - start < 500ms) (void)store_->list({});
  proxy_.blackhole_all();
  // A timeout of a second per call would take half a minute.
  std::vector<Claim> waiting;
  for (int i = 0; i < 60; ++i) waiting.push_back(claim("k" + std::to_string(i)));
  const Duration silent_since = clock_.elapsed();
  EXPECT_EQ(store_->list({}).error().code, Code::STORE_UNAVAILABLE);
  store_.reset();
  EXPECT_LT(clock_.elapsed() - silent_since, 2s + kSlack);
  for (Claim& one : waiting) expect_unavailable(one, kUnchanged);
}

}  // namespace
}  // namespace latchkey
