// The database is unreachable for longer than the calls' time limit: the store rejects every call in time, also calls
// behind an unknown commit. Rejected calls have changed nothing.
#include <future>

#include "conformance/store_test.hpp"
#include "support/postgres/fault_proxy.hpp"
#include "support/postgres/pg_cluster.hpp"
#include "support/postgres/pg_stores.hpp"

namespace latchkey {
namespace {

class PostgresOutage : public PostgresStores {
 protected:
  using Answer = std::future<Result<ClaimReply>>;
  static Answer ask(Store& store, const std::string& key) {
    auto promise = std::make_shared<std::promise<Result<ClaimReply>>>();
    store.claim(a_claim(key), [promise](Result<ClaimReply> reply) { promise->set_value(std::move(reply)); });
    return promise->get_future();
  }
  static bool has_come(Answer& answer, Duration within) { return answer.wait_for(within) == std::future_status::ready; }
  static Code refusal(Answer& answer) {
    const auto reply = answer.get();
    return reply ? Code::INTERNAL : reply.error().code;
  }
};

// One writer, one command per transaction: if each call waited for its own time limit, the last reply would take a
// minute.
TEST_F(PostgresOutage, EveryCallIsRejectedInTime) {
  PgCluster server;
  const auto store = open(server.url(), {.writers = 1, .batch = 1, .patience = 1s});
  ASSERT_TRUE(std::holds_alternative<Won>(Verbs(*store).claim(a_claim("before"))));
  server.stop(PgStop::immediate);
  std::vector<Answer> answers;
  for (int i = 0; i < 60; ++i) answers.push_back(ask(*store, std::to_string(i)));
  for (Answer& answer : answers) {
    ASSERT_TRUE(has_come(answer, 20s)) << "the call waits for the calls before it";
    EXPECT_EQ(refusal(answer), Code::STORE_UNAVAILABLE);
  }
  EXPECT_TRUE(store->find_failure());
  server.start();
  EXPECT_TRUE(std::holds_alternative<Won>(Verbs(*store).claim(a_claim("after"))));
  EXPECT_FALSE(store->find_failure());
  EXPECT_EQ(store->list({}).value().runs.size(), 2u) << "a rejected call created a run";
}

// All writers resolve unknown commits, for up to half an hour.
TEST_F(PostgresOutage, CallsBehindUnknownCommitAreRejected) {
  FaultProxy proxy(PgServer::instance().port());
  const auto store = open(proxy.url(database()), {.writers = 1, .patience = 1s, .reply_max = 1s});
  ASSERT_TRUE(std::holds_alternative<Won>(Verbs(*store).claim(a_claim("before"))));
  proxy.arm({.at = FaultAt::commit_reply, .how = FaultHow::blackhole});
  Answer unknown = ask(*store, "unknown");
  while (proxy.fired() == 0) std::this_thread::yield();
  proxy.blackhole_all();
  std::vector<Answer> behind;
  for (int i = 0; i < 5; ++i) behind.push_back(ask(*store, "behind " + std::to_string(i)));
  for (Answer& answer : behind) {
    ASSERT_TRUE(has_come(answer, 20s)) << "the call waits for the unknown commit";
    EXPECT_EQ(refusal(answer), Code::STORE_UNAVAILABLE);
  }
  EXPECT_FALSE(has_come(unknown, 0s)) << "the commit cannot be resolved yet";
  proxy.cut_all();
  ASSERT_TRUE(has_come(unknown, 20s));
  EXPECT_TRUE(std::holds_alternative<Won>(unknown.get().value()));
  EXPECT_EQ(store->list({}).value().runs.size(), 2u);
}

}  // namespace
}  // namespace latchkey
