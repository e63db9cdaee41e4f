// Waiters: requests that wait for a run to settle. They hold no thread.
//
// A settle through this server wakes them at once; what time or another process does to a run is seen by looking again,
// a few times a second while anybody waits. Each is answered once: when its run has settled or is gone, when its time
// is over, or when the server stops. Safe from any thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "store/run_reader.hpp"

namespace latchkey::api {

class Waiters {
 public:
  // The run as it stands; none when it is gone; or the store's error. Called on the waiters' own thread.
  using Wake = std::move_only_function<void(Result<std::optional<Run>>)>;

  Waiters(RunReader& store, Clock& clock, Duration poll_interval = std::chrono::milliseconds{250});
  ~Waiters() { close(); }

  void add(std::optional<std::string> tenant, RunId id, Duration span, Wake wake);
  // This run may have settled. Costs one atomic load while nobody waits.
  void notify(const RunId& id);
  // Answers everybody with what is known, and from now on at once.
  void close();
  std::size_t size() const { return count_.load(std::memory_order_relaxed); }

 private:
  struct Waiter {
    std::optional<std::string> tenant;
    RunId id;
    Duration until{};
    Wake wake;
    bool is_notified = false;
  };

  void run();
  // Takes out those that are to be looked at: all, or the notified and the late ones.
  std::vector<Waiter> take_due(Duration now, bool all);
  // Looks at those in checking_ and keeps the ones that go on waiting.
  void check_runs(Duration now, bool last);

  RunReader& store_;
  Clock& clock_;
  const Duration poll_interval_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Waiter> waiters_;
  // Taken out to be looked at. Changed by the thread alone; a notification must find them here, or it would be lost
  // when the run settles just after it was read.
  std::vector<Waiter> checking_;
  bool is_notified_ = false;
  bool closed_ = false;
  std::atomic<std::size_t> count_{0};
  std::thread thread_;
};

}  // namespace latchkey::api
