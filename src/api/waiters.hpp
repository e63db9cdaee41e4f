// Waiters: the long polls, which wait for a run to settle. A waiting request occupies no thread.
//
// A settle through this server wakes the requests for that run at once. Deadlines and other processes also change runs,
// so the thread reads all awaited runs four times a second while requests wait. Each request gets one reply: when its
// run has settled or was purged, when its time is over, or when the server stops. Safe from any thread.
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
  // Gets the run in its current state, none when it was purged, or the store's error. Called on the thread of this
  // class.
  using Wake = std::move_only_function<void(Result<std::optional<Run>>)>;

  Waiters(RunReader& store, Clock& clock, Duration poll_interval = std::chrono::milliseconds{250});
  ~Waiters() { close(); }

  void add(std::optional<std::string> tenant, RunId id, Duration span, Wake wake);
  // Reports that this run may have settled. Costs one atomic load while no request waits.
  void notify(const RunId& id);
  // Wakes all requests with the current state of their runs. A request that is added later is woken at once.
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
  // Removes and returns the requests to check: all, or those that were notified or are late.
  std::vector<Waiter> take_due(Duration now, bool all);
  // Reads the runs in checking_, wakes the requests that are done, and returns the others to waiters_.
  void check_runs(Duration now, bool last);

  RunReader& store_;
  Clock& clock_;
  const Duration poll_interval_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Waiter> waiters_;
  // The requests whose runs are being read. Only the thread changes the list. notify() marks them too: otherwise a
  // notification would be lost if the run settles just after it was read.
  std::vector<Waiter> checking_;
  bool is_notified_ = false;
  bool closed_ = false;
  std::atomic<std::size_t> count_{0};
  std::thread thread_;
};

}  // namespace latchkey::api
