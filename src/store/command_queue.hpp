// CommandQueue: commands wait here until the committer takes all of them at once. Any number of pushers, one taker.
#pragma once

#include <condition_variable>
#include <iterator>
#include <mutex>
#include <vector>

#include "base/time.hpp"

namespace latchkey {

template <class Command>
class CommandQueue {
 public:
  // False once closed: the command was not taken in.
  bool push(Command& command) {
    {
      const std::lock_guard lock(mutex_);
      if (closed_) return false;
      waiting_.push_back(std::move(command));
      if (waiting_.size() > 1) return true;  // the taker has been woken, or is at work
    }
    ready_.notify_one();
    return true;
  }

  // All that waits, after waiting for at least one. False when closed and drained.
  bool take_all(std::vector<Command>& into) {
    std::unique_lock lock(mutex_);
    ready_.wait(lock, [&] { return closed_ || !waiting_.empty(); });
    into.swap(waiting_);
    return !into.empty();
  }

  // The same, but gives up waiting after a while; then there may be none.
  bool take_within(std::vector<Command>& into, Duration span) {
    std::unique_lock lock(mutex_);
    ready_.wait_for(lock, span, [&] { return closed_ || !waiting_.empty(); });
    into.swap(waiting_);
    return !closed_ || !into.empty();
  }

  // All that waits now, perhaps nothing.
  void take_waiting(std::vector<Command>& into) {
    const std::lock_guard lock(mutex_);
    into.swap(waiting_);
  }

  // Those that were taken and are still to be done: before what came since.
  void give_back(std::vector<Command> commands) {
    {
      const std::lock_guard lock(mutex_);
      waiting_.insert(waiting_.begin(), std::make_move_iterator(commands.begin()),
                      std::make_move_iterator(commands.end()));
    }
    ready_.notify_one();
  }

  void close() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    ready_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable ready_;
  std::vector<Command> waiting_;
  bool closed_ = false;
};

}  // namespace latchkey
