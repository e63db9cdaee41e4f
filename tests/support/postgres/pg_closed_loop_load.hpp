// ClosedLoopLoad: concurrent callers of one store. Each caller claims a new key, settles the run, enqueues a job, and
// starts again after the reply, until finish(). The duration of every call is recorded. The store's thread runs the
// callers; any thread may call the public methods.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <latch>
#include <mutex>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "store/store.hpp"
#include "support/sample_runs.hpp"

namespace latchkey {

class ClosedLoopLoad {
 public:
  ClosedLoopLoad(Store& store, Clock& clock, std::string prefix, int callers)
      : store_(store), clock_(clock), prefix_(std::move(prefix)), left_(callers) {
    for (int i = 0; i < callers; ++i) claim(i, 0);
  }
  ~ClosedLoopLoad() { finish(); }
  ClosedLoopLoad(const ClosedLoopLoad&) = delete;
  ClosedLoopLoad& operator=(const ClosedLoopLoad&) = delete;

  std::uint64_t replies() const { return replies_; }
  void wait_for_replies(std::uint64_t more) const {
    for (const std::uint64_t enough = replies_ + more; replies_ < enough;) replies_.wait(replies_.load());
  }
  // Waits for the in-flight calls. Returns the durations of all calls, sorted.
  std::vector<Duration> finish() {
    stopping_ = true;
    left_.wait();
    const std::lock_guard lock(mutex_);
    std::ranges::sort(taken_);
    return taken_;
  }

 private:
  std::string name(int caller, int round) const {
    return prefix_ + ":" + std::to_string(caller) + ":" + std::to_string(round);
  }
  void note(Duration since) {
    {
      const std::lock_guard lock(mutex_);
      taken_.push_back(clock_.elapsed() - since);
    }
    ++replies_;
    replies_.notify_all();
  }
  void stop(const std::string& why) {
    ADD_FAILURE() << why;
    left_.count_down();
  }

  void claim(int caller, int round) {
    if (stopping_) return left_.count_down();
    store_.claim(a_claim(name(caller, round)), [=, this, since = clock_.elapsed()](Result<ClaimReply> reply) {
      note(since);
      if (!reply) return stop(to_string(reply.error()));
      const auto* won = std::get_if<Won>(&*reply);
      if (!won) return stop("a new key was not won");
      settle(caller, round, {{}, won->run.id(), won->fence, Complete{"r", {}}});
    });
  }
  void settle(int caller, int round, SettleRequest request) {
    store_.settle({std::move(request)}, [=, this, since = clock_.elapsed()](Result<std::vector<SettleReply>> replies) {
      note(since);
      if (!replies) return stop(to_string(replies.error()));
      if (!std::holds_alternative<Settled>(replies->front())) return stop("the owner could not settle its run");
      enqueue(caller, round);
    });
  }
  void enqueue(int caller, int round) {
    store_.enqueue({a_job("job:" + name(caller, round))},
                   [=, this, since = clock_.elapsed()](Result<std::vector<EnqueueReply>> replies) {
                     note(since);
                     if (!replies) return stop(to_string(replies.error()));
                     const auto* made = std::get_if<Enqueued>(&replies->front());
                     if (!made || made->duplicate) return stop("a new job was a duplicate");
                     claim(caller, round + 1);
                   });
  }

  Store& store_;
  Clock& clock_;
  const std::string prefix_;
  std::atomic<bool> stopping_{false};
  std::atomic<std::uint64_t> replies_{0};
  std::mutex mutex_;
  std::vector<Duration> taken_;
  std::latch left_;
};

}  // namespace latchkey
