// The time limit of a connection ends while no wait is active: bytes have arrived, and the waiting coroutine has not
// resumed yet. There is no wait to cancel, and the next wait must not start.
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

// Handlers that are ready. The test runs them in any order.
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

class ConnectionTimeout : public PostgresStores {
 protected:
  ~ConnectionTimeout() override {
    proxy_.cut_all();  // so that a task that waits forever ends
    run_until([this] { return is_done_; });
  }
  void begin(Task<void> task) {
    is_done_ = false;
    asio::co_spawn(StageExecutor(stage_), std::move(task), [this](const std::exception_ptr& failed) {
      is_done_ = true;
      failed_ = failed != nullptr;
      if (failed) try {
          std::rethrow_exception(failed);
        } catch (const pg::Failure& failure) {
          message_ = failure.what();
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
  // Polls sockets and timers, without running the ready handlers.
  void poll() {
    stage_.context.restart();
    stage_.context.run_one_for(5ms);
  }
  void run_next() {
    auto next = std::move(stage_.ready.front());
    stage_.ready.pop_front();
    next();
  }
  bool run_until(auto done) {
    for (const Duration end = clock_.elapsed() + kPatience; !done() && clock_.elapsed() < end; poll())
      while (!stage_.ready.empty()) run_next();
    return done();
  }
  void poll_until(std::size_t ready) {
    for (const Duration end = clock_.elapsed() + kPatience; stage_.ready.size() < ready && clock_.elapsed() < end;)
      poll();
  }
  // Runs this many handlers, until the next one is ready. Returns false if the task's limit may be over by then.
  bool run_steps(unsigned steps, Duration end) {
    for (unsigned i = 0; i <= steps; ++i) {
      poll_until(1);
      if (clock_.elapsed() >= end) return false;
      EXPECT_EQ(stage_.ready.size(), 1u);
      if (i < steps) run_next();
    }
    return true;
  }
  // Delays the handler after this many steps until the task's limit is over. If the steps themselves took that long,
  // the task is repeated with a longer limit.
  void end_limit_after(unsigned steps, auto begin_with) {
    Duration limit = 300ms;
    for (; limit < kPatience; limit *= 4) {
      const Duration end = clock_.elapsed() + limit;
      begin_with(limit);
      if (run_steps(steps, end)) break;
      proxy_.cut_all();
      ASSERT_TRUE(run_until([this] { return is_done_; })) << "the task waits forever";
      connection_.reset();
      stage_.ready.clear();
    }
    poll_until(2);
    ASSERT_EQ(stage_.ready.size(), 2u) << "the limit is not over";
    std::swap(stage_.ready.front(), stage_.ready.back());
    EXPECT_TRUE(run_until([this] { return is_done_; })) << "the task waits forever";
    EXPECT_TRUE(failed_);
    EXPECT_EQ(message_, "no reply within " + std::to_string(limit.count()) + " ms") << "it is an error of libpq";
  }

  Stage stage_;
  pg::SocketWaiters waits_;
  FaultProxy proxy_{PgServer::instance().port()};
  std::unique_ptr<pg::Connection> connection_;
  bool is_done_ = true, failed_ = false;
  std::string message_;  // of the failure
};

// Two steps: the task starts, and the socket is writable. The next handler has the first bytes of the startup reply.
TEST_F(ConnectionTimeout, ConnectFailsAtItsLimit) {
  end_limit_after(2, [this](Duration limit) {
    proxy_.arm({FaultAt::byte_reply, FaultHow::blackhole, 3});
    begin(connect(limit));
  });
  EXPECT_FALSE(connection_);
}

TEST_F(ConnectionTimeout, RoundTripFailsAtItsLimit) {
  end_limit_after(1, [this](Duration limit) {
    begin(connect(kPatience));
    ASSERT_TRUE(run_until([&] { return is_done_; }));
    ASSERT_TRUE(connection_);
    stage_.ready.clear();
    proxy_.arm({FaultAt::byte_reply, FaultHow::blackhole, 10});
    begin(ask(limit));
  });
  EXPECT_TRUE(connection_->is_lost());
}

}  // namespace
}  // namespace latchkey
