// Half-open connections: a firewall dropped its state, a host vanished, or a server hangs. TCP keepalive does not
// detect them if a middlebox still acknowledges the bytes, so the store limits the time of a reply. The server must
// also end the transaction, or its locks remain. Between two flights idle_in_transaction_session_timeout ends it;
// during a flight the store must terminate the orphaned backend.
#include "conformance/store_test.hpp"
#include "support/postgres/fault_proxy.hpp"
#include "support/postgres/pg_stores.hpp"

namespace latchkey {
namespace {

struct Silence {
  const char* name;
  ConnectionFault fault;
  std::optional<ConnectionFault> then = {};  // a second fault, on the connection that repairs the first
};
void PrintTo(const Silence& silence, std::ostream* out) { *out << silence.name; }

class PostgresHalfOpen : public PostgresStores, public testing::WithParamInterface<Silence> {
 protected:
  ~PostgresHalfOpen() override {
    proxy_.cut_all();  // so that a store that waits forever can be closed
  }

  // The replies to other calls, compared with the call on the half-open connection.
  struct Others {
    std::atomic<bool> have_replies{false}, were_first{false};
  };

  FaultProxy proxy_{PgServer::instance().port()};
  std::unique_ptr<Store> store_ = open(proxy_.url(database()), {.writers = 2, .reply_max = 3s});
  std::unique_ptr<Store> other_ = open(url());
};

constexpr ConnectionFault kBeforeCommit{FaultAt::commit_request, FaultHow::blackhole};
constexpr ConnectionFault kAfterCommit{FaultAt::commit_reply, FaultHow::blackhole};

// The next connection terminates the orphaned backend, then resolves the unknown commit. It can be half-open at either.
INSTANTIATE_TEST_SUITE_P(
    Where, PostgresHalfOpen,
    testing::Values(
        Silence{"between_read_and_write", {FaultAt::flight_request, FaultHow::blackhole}},
        Silence{"before_commit", kBeforeCommit}, Silence{"after_commit", kAfterCommit},
        Silence{"at_once", {FaultAt::byte_request, FaultHow::blackhole}},
        Silence{"within_a_reply", {FaultAt::byte_reply, FaultHow::blackhole, 90}},
        Silence{"then_termination", kBeforeCommit, ConnectionFault{FaultAt::flight_request, FaultHow::blackhole}},
        Silence{"then_resolution", kBeforeCommit, ConnectionFault{FaultAt::commit_request, FaultHow::blackhole, 1}},
        Silence{"then_resolution_reply", kAfterCommit, ConnectionFault{FaultAt::commit_reply, FaultHow::blackhole, 1}}),
    [](const auto& silence) { return std::string(silence.param.name); });

TEST_P(PostgresHalfOpen, CallRepliesWithoutDelayingOthers) {
  Verbs verbs(*store_);
  const Won before = std::get<Won>(verbs.claim(a_claim("before")));
  // The run exists, so the half-open connection has a lock on its row.
  const Won first = std::get<Won>(verbs.claim(a_claim("k")));
  verbs.settle({{}, first.run.id(), first.fence, Release{}});
  proxy_.arm(GetParam().fault);
  auto promise = std::make_shared<std::promise<Result<ClaimReply>>>();
  auto answer = promise->get_future();
  auto others = std::make_shared<Others>();
  store_->claim(a_claim("k"), [promise, others](Result<ClaimReply> reply) {
    others->were_first = others->have_replies.load();
    promise->set_value(std::move(reply));
  });
  while (proxy_.fired() == 0 && answer.wait_for(1ms) != std::future_status::ready) {
  }
  ASSERT_EQ(proxy_.fired(), 1u) << "the fault did not occur";

  // These calls use another connection. The second fault is armed after their replies.
  store_->claim(a_claim("other"), [=, this](Result<ClaimReply> reply) {
    EXPECT_TRUE(reply && std::holds_alternative<Won>(*reply));
    store_->settle({SettleRequest{{}, before.run.id(), before.fence, Complete{"r", {}}}},
                   [=, this](Result<std::vector<SettleReply>> replies) {
                     EXPECT_TRUE(replies && std::get<Settled>(replies->front()).changed);
                     others->have_replies = true;
                     if (GetParam().then) proxy_.arm(*GetParam().then);
                   });
  });

  ASSERT_EQ(answer.wait_for(kPatience), std::future_status::ready) << "the call waits forever";
  const auto reply = answer.get();
  ASSERT_TRUE(reply) << to_string(reply.error());
  EXPECT_TRUE(others->were_first) << "the other calls were delayed";
  const Won won = std::get<Won>(*reply);
  EXPECT_EQ(won.run.id(), first.run.id());
  EXPECT_GT(won.fence, first.fence);
  EXPECT_EQ(won.run.attempt, 2u);
  EXPECT_EQ(other_->find({}, won.run.id()).value()->fence, won.fence);
  EXPECT_EQ(other_->list({}).value().runs.size(), 3u);
  EXPECT_EQ(proxy_.fired(), GetParam().then ? 2u : 1u) << "the second fault did not occur";
}

}  // namespace
}  // namespace latchkey
