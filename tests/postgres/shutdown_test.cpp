// Closing a store whose server says nothing any more: it takes no longer than it may, whatever waits; everybody is
// answered, and nobody is told what is not so.
#include <gmock/gmock.h>

#include "conformance/store_test.hpp"
#include "support/comes_true.hpp"
#include "support/postgres/fault_proxy.hpp"
#include "support/postgres/pg_bystander.hpp"
#include "support/postgres/pg_stores.hpp"

namespace latchkey {
namespace {

using ::testing::HasSubstr;

// Every other limit is far beyond the test's.
PostgresSettings settings(Duration close_max) {
  return {.writers = 2, .readers = 2, .patience = 10min, .reply_max = 10min, .close_max = close_max};
}
constexpr Duration kSlack = 10s;
constexpr const char* kUnknown = "commit status unknown";
constexpr const char* kUnchanged = "nothing was changed";

class PostgresClose : public PostgresStores {
 protected:
  using Claim = std::future<Result<ClaimReply>>;

  ~PostgresClose() override {
    proxy_.cut_all();  // a store that waits for ever can be closed then
  }
  Claim claim(const std::string& key) {
    auto told = std::make_shared<std::promise<Result<ClaimReply>>>();
    auto answer = told->get_future();
    store_->claim(a_claim(key), [told](Result<ClaimReply> reply) { told->set_value(std::move(reply)); });
    return answer;
  }
  // A claim whose connection goes silent there.
  Claim claim_in_silence(const std::string& key, FaultAt at) {
    proxy_.arm(ConnectionFault{at, FaultHow::swallow});
    Claim claimed = claim(key);
    while (proxy_.fired() == 0 && claimed.wait_for(1ms) != std::future_status::ready) {
    }
    EXPECT_EQ(proxy_.fired(), 1u) << "the test did not test";
    return claimed;
  }
  // `round` gives the error that it met. After a second of silence a connection is given up: where the machine keeps
  // the database from its answer for so long, which a bystander sees, it is played again.
  void expect_no_error(auto round) {
    for (int i = 0; i < 20; ++i) {
      Bystander bystander(url(), clock_);
      const std::optional<Error> error = round(std::to_string(i));
      if (!error) return;
      ASSERT_GT(bystander.finish(), 300ms) << to_string(*error);
      store_.reset();
    }
    ADD_FAILURE() << "the test did not test: the machine stalls again and again";
  }
  template <class T>
  static std::optional<Error> error_of(const Result<T>& result) {
    return result ? std::nullopt : std::optional(result.error());
  }
  static void expect_unavailable(Claim& claimed, const char* detail) {
    ASSERT_EQ(claimed.wait_for(0s), std::future_status::ready) << "it was not answered";
    const auto reply = claimed.get();
    ASSERT_FALSE(reply) << "nobody can know that";
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

class PostgresCloseAmidACommit : public PostgresClose, public testing::WithParamInterface<FaultAt> {};
INSTANTIATE_TEST_SUITE_P(Where, PostgresCloseAmidACommit,
                         testing::Values(FaultAt::commit_asked, FaultAt::commit_answered),
                         [](const auto& at) { return at.param == FaultAt::commit_asked ? "before_it" : "after_it"; });

TEST_P(PostgresCloseAmidACommit, EverybodyIsAnsweredInTime) {
  store_ = open(proxy_.url(database()), settings(1s));
  ASSERT_TRUE(store_->list({}));
  Claim unknown = claim_in_silence("unknown", GetParam());
  proxy_.hush_all();
  // One for the lane that is left; the others wait for one.
  Claim begun = claim("begun");
  ASSERT_TRUE(comes_true([this] { return proxy_.unheard() > 0; })) << "it was not asked for";
  std::vector<Claim> waiting;
  for (int i = 0; i < 10; ++i) waiting.push_back(claim("waiting" + std::to_string(i)));
  // Two have connections; the others wait for one.
  std::vector<std::future<Result<Page>>> reads;
  for (int i = 0; i < 6; ++i) reads.push_back(std::async(std::launch::async, [this] { return store_->list({}); }));
  ASSERT_TRUE(comes_true([this] { return proxy_.unheard() >= 3; })) << "nothing was read";

  const Duration start = clock_.elapsed();
  store_->begin_shutdown();
  for (auto& read : reads) {
    ASSERT_EQ(read.wait_for(kPatience), std::future_status::ready) << "it waits for ever";
    EXPECT_EQ(read.get().error().code, Code::STORE_UNAVAILABLE);
  }
  store_.reset();
  EXPECT_LT(clock_.elapsed() - start, 1s + kSlack);

  expect_unavailable(unknown, kUnknown);
  expect_unavailable(begun, kUnchanged);
  for (Claim& one : waiting) expect_unavailable(one, kUnchanged);
  proxy_.cut_all();
  EXPECT_EQ(is_there("unknown"), GetParam() == FaultAt::commit_answered);
  EXPECT_FALSE(is_there("begun"));
  EXPECT_FALSE(is_there("waiting0"));
}

// One connection alone is silent: what became of its commit is asked on another.
TEST_P(PostgresCloseAmidACommit, WhatCanBeFoundOutIs) {
  store_ = open(proxy_.url(database()), settings(8s));
  Claim claimed = claim_in_silence("k", GetParam());
  const Duration start = clock_.elapsed();
  store_.reset();
  EXPECT_LT(clock_.elapsed() - start, 8s + kSlack);
  const auto reply = claimed.get();
  ASSERT_TRUE(reply) << to_string(reply.error());
  const Won won = std::get<Won>(*reply);
  EXPECT_EQ(other_->find({}, won.run.id()).value()->fence, won.fence);
  EXPECT_EQ(other_->list({}).value().runs.size(), 1u);
}

// What is well goes on until it is closed.
TEST_F(PostgresClose, ItAnswersAsEverUntilThen) {
  store_ = open(url(), settings(1min));
  store_->begin_shutdown();
  EXPECT_TRUE(std::holds_alternative<Won>(Verbs(*store_).claim(a_claim("k"))));
  EXPECT_EQ(store_->list({}).value().runs.size(), 1u);
  Claim last = claim("last");
  const Duration start = clock_.elapsed();
  store_->begin_shutdown();
  store_.reset();
  EXPECT_LT(clock_.elapsed() - start, 20s) << "it waits for its limit";
  EXPECT_TRUE(last.get());
}

// However long ago it was told to close: whoever sends a large body is still to be answered, and what is written behind
// comes last of all.
TEST_F(PostgresClose, ADatabaseThatAnswersIsAskedAsEver) {
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

// Nor is a connection given up that is about to answer, whenever that is.
TEST_F(PostgresClose, AnAnswerThatTakesAMomentIsWaitedFor) {
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

// One that falls silent then: there is one end to it, however much waits.
TEST_F(PostgresClose, SilenceAfterThatTimeEndsItForAll) {
  PostgresSettings one_by_one = settings(200ms);
  one_by_one.batch = 1;
  store_ = open(proxy_.url(database()), one_by_one);
  store_->begin_shutdown();
  const Duration start = clock_.elapsed();
  while (clock_.elapsed() - start < 500ms) (void)store_->list({});
  proxy_.hush_all();
  // A second for each would be half a minute for all.
  std::vector<Claim> waiting;
  for (int i = 0; i < 60; ++i) waiting.push_back(claim("k" + std::to_string(i)));
  const Duration hushed = clock_.elapsed();
  EXPECT_EQ(store_->list({}).error().code, Code::STORE_UNAVAILABLE);
  store_.reset();
  EXPECT_LT(clock_.elapsed() - hushed, 2s + kSlack);
  for (Claim& one : waiting) expect_unavailable(one, kUnchanged);
}

}  // namespace
}  // namespace latchkey
