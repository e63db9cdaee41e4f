// A session whose connection was cut amid a transaction, and which has not noticed yet: it holds what its store asks
// for again.
#include <csignal>

#include "conformance/store_test.hpp"
#include "support/comes_true.hpp"
#include "support/postgres/fault_proxy.hpp"
#include "support/postgres/pg_stores.hpp"

namespace latchkey {
namespace {

class PostgresLeftBehind : public PostgresStores {
 protected:
  ~PostgresLeftBehind() override {
    if (stopped_ > 0) ::kill(stopped_, SIGCONT);
    proxy_.cut_all();
  }
  // The session that waits for its writes does nothing more until it is let go on.
  void stop_who_waits() {
    ASSERT_TRUE(comes_true([&] {
      const std::string pid = hand_.ask_one(
          "SELECT coalesce(min(pid), 0) FROM pg_stat_activity WHERE datname = current_database() AND xact_start IS NOT "
          "NULL AND wait_event_type = 'Client'");
      stopped_ = std::stoi(pid);
      return stopped_ > 0;
    }));
    ASSERT_EQ(::kill(stopped_, SIGSTOP), 0);
  }
  void let_go_on() { ASSERT_EQ(::kill(std::exchange(stopped_, 0), SIGCONT), 0); }

  pid_t stopped_ = 0;
  PgClient hand_{url()};
  FaultProxy proxy_{PgServer::instance().port()};
  std::unique_ptr<Store> store_ = open(proxy_.url(database()), {.writers = 1});
};

// Those who take pass over what is locked: they would find nothing.
TEST_F(PostgresLeftBehind, ATakeFindsWhatItsLostTryHeld) {
  Verbs(*store_).enqueue(a_job("k"));
  proxy_.arm({FaultAt::flight_asked, FaultHow::swallow});  // it has locked, and not yet written
  std::promise<Result<std::vector<Taken>>> told;
  auto answer = told.get_future();
  store_->take({.functions = {"f"}, .limit = 1, .session = id_of(5)},
               [&](Result<std::vector<Taken>> taken) { told.set_value(std::move(taken)); });
  ASSERT_TRUE(comes_true([&] { return proxy_.fired() == 1; })) << "the test did not test";
  ASSERT_NO_FATAL_FAILURE(stop_who_waits());
  proxy_.cut_all();
  EXPECT_EQ(answer.wait_for(300ms), std::future_status::timeout) << "it did not wait for the end of its own session";
  let_go_on();
  const auto taken = answer.get();
  ASSERT_TRUE(taken) << to_string(taken.error());
  EXPECT_EQ(taken->size(), 1u);
}

// A machine that stood still for hours amid a commit, by whose name nobody can tell any more whether it was kept: what
// came with it is neither done again nor told as done.
TEST_F(PostgresLeftBehind, ACommitWhoseNameMayBePurgedStaysUnknown) {
  ManualClock time{clock_.now()};
  store_ = open(proxy_.url(database()), {.writers = 1, .clock = &time, .reply_max = 1min});
  proxy_.arm({FaultAt::commit_answered, FaultHow::swallow});
  std::promise<Result<std::vector<EnqueueReply>>> told;
  auto answer = told.get_future();
  store_->enqueue({{.function = "f"}},
                  [&](Result<std::vector<EnqueueReply>> replies) { told.set_value(std::move(replies)); });
  ASSERT_TRUE(comes_true([&] { return proxy_.fired() == 1; }));
  time.advance(2h);
  const auto another = open(url(), {.clock = &time});
  while (Verbs(*another).purge().more) {
  }
  EXPECT_EQ(hand_.ask_one("SELECT count(*) FROM latchkey.batches WHERE at < 0 OR at < " +
                          std::to_string(to_ms(time.now() - 1h))),
            "0")
      << "the test did not test";
  proxy_.cut_all();
  const auto replies = answer.get();
  ASSERT_FALSE(replies);
  EXPECT_EQ(replies.error().code, Code::STORE_UNAVAILABLE);
  EXPECT_TRUE(replies.error().detail.contains("commit status unknown"));
  EXPECT_EQ(hand_.ask_one("SELECT count(*) FROM latchkey.runs"), "1") << "done twice";
}

}  // namespace
}  // namespace latchkey
