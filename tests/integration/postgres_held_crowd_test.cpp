// A tenant that holds thousands of keys in one transaction, and asks for all of them: it waits for itself, and nobody
// for it.
#include <atomic>
#include <future>
#include <latch>

#include "conformance/store_test.hpp"
#include "integration/pg_stores.hpp"

namespace latchkey {
namespace {

class PostgresHeldCrowd : public PostgresStores {
 protected:
  static constexpr int kHeld = 2'000;
  // To see that a key is held takes a millisecond: whoever had to wait for all of them would need longer.
  static constexpr Duration kMost = 700ms;
  struct Answers {
    std::atomic<int> busy{0}, others{0};
    std::latch all{kHeld};
  };

  PgClient user(const std::string& tenant) {
    PgClient session(url());
    session.execute("SET app.current_tenant = '" + tenant + "'");
    return session;
  }
  static ClaimRequest claim_of(const std::string& tenant, const std::string& key) {
    ClaimRequest request = a_claim(key, tenant);
    request.fingerprint.reset();
    return request;
  }
  std::future<Result<ClaimReply>> ask(const std::string& tenant, const std::string& key) {
    auto promise = std::make_shared<std::promise<Result<ClaimReply>>>();
    store_->claim(claim_of(tenant, key), [promise](Result<ClaimReply> reply) { promise->set_value(std::move(reply)); });
    return promise->get_future();
  }
  // All that the first tenant holds, as fast as it can.
  void ask_for_all() {
    for (int i = 0; i < kHeld; ++i)
      store_->claim(claim_of("a", "held" + std::to_string(i)), [answers = answers_](Result<ClaimReply> reply) {
        ++(reply && std::holds_alternative<Busy>(*reply) ? answers->busy : answers->others);
        answers->all.count_down();
      });
  }
  void expect_won_soon(const std::string& tenant, const std::string& key) {
    const Duration since = clock_.elapsed();
    const auto reply = ask(tenant, key).get();
    ASSERT_TRUE(reply) << to_string(reply.error());
    EXPECT_TRUE(std::holds_alternative<Won>(*reply));
    EXPECT_LT(clock_.elapsed() - since, kMost) << tenant << " " << key;
  }

  std::unique_ptr<PostgresStore> store_ = open(url(), {.patience = 60s});
  std::shared_ptr<Answers> answers_ = std::make_shared<Answers>();
};

TEST_F(PostgresHeldCrowd, DelaysNobody) {
  PgClient many = user("a"), one = user("b");
  many.execute("BEGIN; SELECT latchkey.begin_run('f', 'held' || i) FROM generate_series(0, 1999) i");
  one.execute("BEGIN; SELECT latchkey.begin_run('f', 'k')");
  expect_won_soon("b", "first");  // the connections are open then
  ask_for_all();
  auto held = ask("b", "k");
  for (int i = 0; i < 50; ++i) {
    expect_won_soon("b", std::to_string(i));
    expect_won_soon("a", std::to_string(i));
  }
  EXPECT_EQ(held.wait_for(0ms), std::future_status::timeout) << "the test did not test";
  const Duration since = clock_.elapsed();
  one.execute("COMMIT");
  EXPECT_TRUE(std::holds_alternative<Busy>(held.get().value()));
  EXPECT_LT(clock_.elapsed() - since, kMost);
  EXPECT_EQ(answers_->busy + answers_->others, 0) << "the test did not test";
  many.execute("COMMIT");
  answers_->all.wait();
  EXPECT_EQ(answers_->busy, kHeld);
}

}  // namespace
}  // namespace latchkey
