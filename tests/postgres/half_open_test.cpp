// A connection on which nothing comes any more and which nobody ends: a firewall that forgot it, a host that vanished,
// a server that hangs. Keepalives do not help where somebody still acknowledges the bytes: only a limit on how long an
// answer may take does. The server must let go of the transaction too, or its locks stay:
// idle_in_transaction_session_timeout does that between two flights; amid one only the end of that session does, by who
// opened it.
#include "conformance/store_test.hpp"
#include "support/postgres/fault_proxy.hpp"
#include "support/postgres/pg_stores.hpp"

namespace latchkey {
namespace {

struct Silence {
  const char* name;
  ConnectionFault fault;
  std::optional<ConnectionFault> then = {};  // what those meet who set it right
};
void PrintTo(const Silence& silence, std::ostream* out) { *out << silence.name; }

class PostgresHalfOpen : public PostgresStores, public testing::WithParamInterface<Silence> {
 protected:
  ~PostgresHalfOpen() override {
    proxy_.cut_all();  // a store that waits for ever can be closed then
  }

  // Whether they were answered before the one whose connection is silent was.
  struct Others {
    std::atomic<bool> are_answered{false}, were_first{false};
  };

  FaultProxy proxy_{PgServer::instance().port()};
  std::unique_ptr<Store> store_ = open(proxy_.url(database()), {.writers = 2, .reply_max = 3s});
  std::unique_ptr<Store> other_ = open(url());
};

constexpr ConnectionFault kBeforeCommit{FaultAt::commit_asked, FaultHow::swallow};
constexpr ConnectionFault kAfterCommit{FaultAt::commit_answered, FaultHow::swallow};

// Whoever comes next ends the session that was left behind, then looks what became of the commit, and may go silent at
// either.
INSTANTIATE_TEST_SUITE_P(Where, PostgresHalfOpen,
                         testing::Values(Silence{"between_read_and_write", {FaultAt::flight_asked, FaultHow::swallow}},
                                         Silence{"before_commit", kBeforeCommit}, Silence{"after_commit", kAfterCommit},
                                         Silence{"at_once", {FaultAt::byte_asked, FaultHow::swallow}},
                                         Silence{"amid_an_answer", {FaultAt::byte_answered, FaultHow::swallow, 90}},
                                         Silence{"then_who_ends_it", kBeforeCommit,
                                                 ConnectionFault{FaultAt::flight_asked, FaultHow::swallow}},
                                         Silence{"then_who_looks", kBeforeCommit,
                                                 ConnectionFault{FaultAt::commit_asked, FaultHow::swallow, 1}},
                                         Silence{"then_who_has_looked", kAfterCommit,
                                                 ConnectionFault{FaultAt::commit_answered, FaultHow::swallow, 1}}),
                         [](const auto& silence) { return std::string(silence.param.name); });

TEST_P(PostgresHalfOpen, TheCallIsAnsweredAndOthersAreNotHeldUp) {
  Verbs verbs(*store_);
  const Won before = std::get<Won>(verbs.claim(a_claim("before")));
  // A run that is there already: its row is locked while the connection is silent.
  const Won first = std::get<Won>(verbs.claim(a_claim("k")));
  verbs.settle({{}, first.run.id(), first.fence, Release{}});
  proxy_.arm(GetParam().fault);
  auto told = std::make_shared<std::promise<Result<ClaimReply>>>();
  auto answer = told->get_future();
  auto others = std::make_shared<Others>();
  store_->claim(a_claim("k"), [told, others](Result<ClaimReply> reply) {
    others->were_first = others->are_answered.load();
    told->set_value(std::move(reply));
  });
  while (proxy_.fired() == 0 && answer.wait_for(1ms) != std::future_status::ready) {
  }
  ASSERT_EQ(proxy_.fired(), 1u) << "the test did not test";

  // On another connection. What those meet who set it right is armed at once when the others have been answered.
  store_->claim(a_claim("other"), [=, this](Result<ClaimReply> reply) {
    EXPECT_TRUE(reply && std::holds_alternative<Won>(*reply));
    store_->settle({SettleRequest{{}, before.run.id(), before.fence, Complete{"r", {}}}},
                   [=, this](Result<std::vector<SettleReply>> replies) {
                     EXPECT_TRUE(replies && std::get<Settled>(replies->front()).changed);
                     others->are_answered = true;
                     if (GetParam().then) proxy_.arm(*GetParam().then);
                   });
  });

  ASSERT_EQ(answer.wait_for(kPatience), std::future_status::ready) << "it waits for ever";
  const auto reply = answer.get();
  ASSERT_TRUE(reply) << to_string(reply.error());
  EXPECT_TRUE(others->were_first) << "they were held up";
  const Won won = std::get<Won>(*reply);
  EXPECT_EQ(won.run.id(), first.run.id());
  EXPECT_GT(won.fence, first.fence);
  EXPECT_EQ(won.run.attempt, 2u);
  EXPECT_EQ(other_->find({}, won.run.id()).value()->fence, won.fence);
  EXPECT_EQ(other_->list({}).value().runs.size(), 3u);
  EXPECT_EQ(proxy_.fired(), GetParam().then ? 2u : 1u) << "the test did not test";
}

}  // namespace
}  // namespace latchkey
