// A connection's limit that is over just when it does not wait: something has come, and whoever waited for it has not
// gone on yet. There is nothing to be cancelled then, and the next wait must not begin.
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <deque>
#include <functional>

#include "base/clock.hpp"
#include "conformance/await.hpp"
#include "pg/connection.hpp"
#include "support/postgres/fault_proxy.hpp"
#include "support/postgres/pg_stores.hpp"

namespace latchkey {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

// What is ready to go on waits for the test to say so, in whichever order.
struct Stage {
  asio::io_context context{1};
  std::deque<std::move_only_function<void()>> ready;
};

class StageExecutor {
 public:
  explicit StageExecutor(Stage& stage) : stage_(&stage) {}
  asio::execution_context& query(asio::execution::context_t) const noexcept { return stage_->context; }
  static constexpr asio::execution::blocking_t query(asio::execution::blocking_t) noexcept {
    return asio::execution::blocking.never;
  }
  StageExecutor require(asio::execution::blocking_t::never_t) const noexcept { return *this; }
  template <class Act>
  void execute(Act act) const {
    stage_->ready.emplace_back(std::move(act));
  }
  bool operator==(const StageExecutor&) const noexcept = default;

 private:
  Stage* stage_;
};

class PostgresLimit : public PostgresStores {
 protected:
  ~PostgresLimit() override {
    proxy_.cut_all();  // whoever waits for ever goes on then
    go_on_until([this] { return is_over_; });
  }
  void begin(Task<void> task) {
    is_over_ = false;
    asio::co_spawn(StageExecutor(stage_), std::move(task), [this](const std::exception_ptr& failed) {
      is_over_ = true;
      failed_ = failed != nullptr;
      if (failed) try {
          std::rethrow_exception(failed);
        } catch (const pg::Failure& failure) {
          said_ = failure.what();
        }
    });
  }
  Task<void> connect(Duration limit) {
    connection_ = co_await pg::Connection::connect(waits_, proxy_.url(database()), limit);
  }
  Task<void> ask(Duration limit) {
    connection_->add("SELECT 1");
    co_await connection_->run(limit);
  }
  // Something happens at the sockets and timers; who waited for it does not go on.
  void look() {
    stage_.context.restart();
    stage_.context.run_one_for(5ms);
  }
  void go_on() {
    auto next = std::move(stage_.ready.front());
    stage_.ready.pop_front();
    next();
  }
  bool go_on_until(auto done) {
    for (const Duration patience = clock_.elapsed() + kPatience; !done() && clock_.elapsed() < patience; look())
      while (!stage_.ready.empty()) go_on();
    return done();
  }
  void look_until(std::size_t ready) {
    for (const Duration patience = clock_.elapsed() + kPatience;
         stage_.ready.size() < ready && clock_.elapsed() < patience;)
      look();
  }
  // So often it goes on as ever, until the next thing is there that it could hear of. False when its time may be over
  // by then.
  bool come_to(unsigned steps, Duration end) {
    for (unsigned i = 0; i <= steps; ++i) {
      look_until(1);
      if (clock_.elapsed() >= end) return false;
      EXPECT_EQ(stage_.ready.size(), 1u);
      if (i < steps) go_on();
    }
    return true;
  }
  // What comes after so many steps it does not hear of before its time is over. Where the machine took that time for
  // the steps, it is played again with more.
  void let_limit_fall_after(unsigned steps, auto begin_with) {
    Duration limit = 300ms;
    for (; limit < kPatience; limit *= 4) {
      const Duration end = clock_.elapsed() + limit;
      begin_with(limit);
      if (come_to(steps, end)) break;
      proxy_.cut_all();
      ASSERT_TRUE(go_on_until([this] { return is_over_; })) << "it waits for ever";
      connection_.reset();
      stage_.ready.clear();
    }
    look_until(2);
    ASSERT_EQ(stage_.ready.size(), 2u) << "the test did not test";
    std::swap(stage_.ready.front(), stage_.ready.back());
    EXPECT_TRUE(go_on_until([this] { return is_over_; })) << "it waits for ever";
    EXPECT_TRUE(failed_);
    EXPECT_EQ(said_, "no answer within " + std::to_string(limit.count()) + " ms") << "libpq knows nothing of it";
  }

  Stage stage_;
  pg::SocketWaiters waits_;
  FaultProxy proxy_{PgServer::instance().port()};
  std::unique_ptr<pg::Connection> connection_;
  bool is_over_ = true, failed_ = false;
  std::string said_;  // by the failure
};

// The task, when it can write, when the first of the greeting is there.
TEST_F(PostgresLimit, OfConnecting) {
  let_limit_fall_after(2, [this](Duration limit) {
    proxy_.arm({FaultAt::byte_answered, FaultHow::swallow, 3});
    begin(connect(limit));
  });
  EXPECT_FALSE(connection_);
}

TEST_F(PostgresLimit, OfARoundTrip) {
  let_limit_fall_after(1, [this](Duration limit) {
    begin(connect(kPatience));
    ASSERT_TRUE(go_on_until([&] { return is_over_; }));
    ASSERT_TRUE(connection_);
    stage_.ready.clear();
    proxy_.arm({FaultAt::byte_answered, FaultHow::swallow, 10});
    begin(ask(limit));
  });
  EXPECT_TRUE(connection_->is_lost());
}

}  // namespace
}  // namespace latchkey
