// Orphaned backends: the connection was cut during a transaction, and the backend has not noticed. It has locks on rows
// that its store needs again.
#include <csignal>

#include "conformance/store_test.hpp"
#include "support/postgres/fault_proxy.hpp"
#include "support/postgres/pg_stores.hpp"
#include "support/wait_until.hpp"

namespace latchkey {
namespace {

class OrphanedBackend : public PostgresStores {
 protected:
  ~OrphanedBackend() override {
    if (stopped_ > 0) ::kill(stopped_, SIGCONT);
    proxy_.cut_all();
  }
  // Stops the store's backend, which waits for the writes of its transaction.
  void stop_backend() {
    ASSERT_TRUE(wait_until([&] {
      const std::string pid = admin_.ask_one(
          "SELECT coalesce(min(pid), 0) FROM pg_stat_activity WHERE datname = current_database() AND xact_start IS NOT "
          "NULL AND wait_event_type = 'Client'");
      stopped_ = std::stoi(pid);
      return stopped_ > 0;
    }));
    ASSERT_EQ(::kill(stopped_, SIGSTOP), 0);
  }
  void resume_backend() { ASSERT_EQ(::kill(std::exchange(stopped_, 0), SIGCONT), 0); }

  pid_t stopped_ = 0;
  PgClient admin_{url()};
  FaultProxy proxy_{PgServer::instance().port()};
  std::unique_ptr<Store> store_ = open(proxy_.url(database()), {.writers = 1});
};

// A take skips locked rows. It would find no job if it did not wait for the end of its own orphaned backend.
TEST_F(OrphanedBackend, TakeFindsJobThatItHadLocked) {
  Verbs(*store_).enqueue(a_job("k"));
  proxy_.arm({FaultAt::flight_request, FaultHow::blackhole});  // after the locks, before the writes
  std::promise<Result<std::vector<Taken>>> promise;
  auto answer = promise.get_future();
  store_->take({.functions = {"f"}, .limit = 1, .session = id_of(5)},
               [&](Result<std::vector<Taken>> taken) { promise.set_value(std::move(taken)); });
  ASSERT_TRUE(wait_until([&] { return proxy_.fired() == 1; })) << "the fault did not occur";
  ASSERT_NO_FATAL_FAILURE(stop_backend());
  proxy_.cut_all();
  EXPECT_EQ(answer.wait_for(300ms), std::future_status::timeout) << "the take did not wait for its orphaned backend";
  resume_backend();
  const auto taken = answer.get();
  ASSERT_TRUE(taken) << to_string(taken.error());
  EXPECT_EQ(taken->size(), 1u);
}

// A machine pauses for hours during a commit. The batch's name may be purged, so the commit stays unknown: the store
// neither executes the batch again nor reports success.
TEST_F(OrphanedBackend, CommitWithPurgedNameStaysUnknown) {
  ManualClock time{clock_.now()};
  store_ = open(proxy_.url(database()), {.writers = 1, .clock = &time, .reply_max = 1min});
  proxy_.arm({FaultAt::commit_reply, FaultHow::blackhole});
  std::promise<Result<std::vector<EnqueueReply>>> promise;
  auto answer = promise.get_future();
  store_->enqueue({{.function = "f"}},
                  [&](Result<std::vector<EnqueueReply>> replies) { promise.set_value(std::move(replies)); });
  ASSERT_TRUE(wait_until([&] { return proxy_.fired() == 1; }));
  time.advance(2h);
  const auto another = open(url(), {.clock = &time});
  while (Verbs(*another).purge().more) {
  }
  EXPECT_EQ(admin_.ask_one("SELECT count(*) FROM latchkey.batches WHERE at < 0 OR at < " +
                           std::to_string(to_ms(time.now() - 1h))),
            "0")
      << "the purge left the batch's name";
  proxy_.cut_all();
  const auto replies = answer.get();
  ASSERT_FALSE(replies);
  EXPECT_EQ(replies.error().code, Code::STORE_UNAVAILABLE);
  EXPECT_TRUE(replies.error().detail.contains("commit status unknown"));
  EXPECT_EQ(admin_.ask_one("SELECT count(*) FROM latchkey.runs"), "1") << "the batch was executed twice";
}

}  // namespace
}  // namespace latchkey
