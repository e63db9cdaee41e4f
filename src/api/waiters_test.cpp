#include "api/waiters.hpp"

#include <gtest/gtest.h>

#include <future>

namespace latchkey::api {
namespace {

using namespace std::chrono_literals;

// Each find() calls on_find(); the other reads are not used.
class ScriptedReader final : public RunReader {
 public:
  Result<std::optional<Run>> find(const std::optional<std::string>&, RunId) override { return on_find(); }
  Result<std::optional<Run>> find_latest(const KeyName&) override { return std::nullopt; }
  Result<Page> list(const ListQuery&) override { return Page{}; }
  Result<std::optional<Duplicates>> find_duplicates(RunId) override { return std::nullopt; }
  Result<StoreStats> stats() override { return StoreStats{}; }

  std::function<std::optional<Run>()> on_find;
};

Run run_in(State state) {
  Run run;
  auto head = std::make_shared<RunHead>();
  head->id = make_uuid_v7(from_ms(1), 1, 1);
  run.head = std::move(head);
  run.state = std::move(state);
  return run;
}

TEST(Waiters, NotificationDuringReadIsNotLost) {
  SystemClock clock;
  ScriptedReader store;
  const latchkey::Run running = run_in(Running{}), done = run_in(Completed{});
  Waiters* waiters = nullptr;
  int finds = 0;
  // The run settles and the notification comes after the store was read and before find() returns.
  store.on_find = [&] {
    if (++finds > 1) return done;
    waiters->notify(running.id());
    return running;
  };
  std::promise<Status> woken;
  auto answer = woken.get_future();
  Waiters polls(store, clock, 1h);  // only the notification can wake the request
  waiters = &polls;
  polls.add(std::nullopt, running.id(), 1h,
            [&](Result<std::optional<latchkey::Run>> run) { woken.set_value((*run)->status()); });
  ASSERT_EQ(answer.wait_for(20s), std::future_status::ready);
  EXPECT_EQ(answer.get(), Status::completed);
}

}  // namespace
}  // namespace latchkey::api
