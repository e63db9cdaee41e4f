// A connection on which nothing comes any more and which nobody ends: a firewall that forgot it, a host that vanished,
// a server that hangs. Keepalives do not help where somebody still acknowledges the bytes: only a limit on how long an
// answer may take does. The server must let go of the transaction too, or its locks stay:
// idle_in_transaction_session_timeout does that between two flights; amid one only the end of that session does, by who
// opened it.
#include "conformance/store_test.hpp"
#include "integration/pg_stores.hpp"
#include "support/fault_proxy.hpp"

namespace latchkey {
namespace {

struct Silence {
  const char* name;
  Fault fault;
};
void PrintTo(const Silence& silence, std::ostream* out) { *out << silence.name; }

class PostgresHalfOpen : public PostgresStores, public testing::WithParamInterface<Silence> {
 protected:
  ~PostgresHalfOpen() override {
    proxy_.cut_all();  // a store that waits for ever can be closed then
  }

  FaultProxy proxy_{PgServer::instance().port()};
  std::unique_ptr<Store> store_ = open(proxy_.url(database()), {.lanes = 2, .reply_max = 3s});
  std::unique_ptr<Store> other_ = open(url());
};

INSTANTIATE_TEST_SUITE_P(Where, PostgresHalfOpen,
                         testing::Values(Silence{"between_read_and_write", {FaultAt::flight_asked, FaultHow::swallow}},
                                         Silence{"before_commit", {FaultAt::commit_asked, FaultHow::swallow}},
                                         Silence{"after_commit", {FaultAt::commit_answered, FaultHow::swallow}},
                                         Silence{"at_once", {FaultAt::byte_asked, FaultHow::swallow}},
                                         Silence{"amid_an_answer", {FaultAt::byte_answered, FaultHow::swallow, 90}}),
                         [](const auto& silence) { return std::string(silence.param.name); });

// Within the 20 seconds for which the suite waits for any answer.
TEST_P(PostgresHalfOpen, TheCallIsAnsweredAndOthersAreNotHeldUp) {
  Verbs verbs(*store_);
  const Won before = std::get<Won>(verbs.claim(a_claim("before")));
  // A run that is there already: its row is locked while the connection is silent.
  const Won first = std::get<Won>(verbs.claim(a_claim("k")));
  verbs.settle({{}, first.run.id(), first.fence, Release{}});
  proxy_.arm(GetParam().fault);
  auto told = std::make_shared<std::promise<Result<ClaimReply>>>();
  auto answer = told->get_future();
  store_->claim(a_claim("k"), [told](Result<ClaimReply> reply) { told->set_value(std::move(reply)); });
  while (proxy_.fired() == 0 && answer.wait_for(1ms) != std::future_status::ready) {
  }
  ASSERT_EQ(proxy_.fired(), 1u) << "the test did not test";

  const Duration start = clock_.elapsed();
  EXPECT_TRUE(std::holds_alternative<Won>(verbs.claim(a_claim("other"))));
  verbs.settle({{}, before.run.id(), before.fence, Complete{"r", {}}});
  EXPECT_LT(clock_.elapsed() - start, 2s) << "on another connection";

  ASSERT_EQ(answer.wait_for(kPatience), std::future_status::ready) << "it waits for ever";
  const auto reply = answer.get();
  ASSERT_TRUE(reply) << to_string(reply.error());
  const Won won = std::get<Won>(*reply);
  EXPECT_EQ(won.run.id(), first.run.id());
  EXPECT_GT(won.fence, first.fence);
  EXPECT_EQ(won.run.attempt, 2u);
  EXPECT_EQ(other_->find({}, won.run.id()).value()->fence, won.fence);
  EXPECT_EQ(other_->list({}).value().runs.size(), 3u);
}

}  // namespace
}  // namespace latchkey
