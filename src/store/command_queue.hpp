// CommandQueue: the queue of a writer, which takes all queued commands at once. Any number of threads may push; one
// thread takes.
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
  // False if the queue is closed: the command was not queued.
  bool push(Command& command) {
    {
      const std::lock_guard lock(mutex_);
      if (closed_) return false;
      waiting_.push_back(std::move(command));
      if (waiting_.size() > 1) return true;  // the writer was woken by the first command, or is busy
    }
    ready_.notify_one();
    return true;
  }

  // Waits for at least one command and takes all. False when the queue is closed and empty.
  bool take_all(std::vector<Command>& into) {
    std::unique_lock lock(mutex_);
    ready_.wait(lock, [&] { return closed_ || !waiting_.empty(); });
    into.swap(waiting_);
    return !into.empty();
  }

  // The same, but returns after `span` even without a command.
  bool take_within(std::vector<Command>& into, Duration span) {
    std::unique_lock lock(mutex_);
    ready_.wait_for(lock, span, [&] { return closed_ || !waiting_.empty(); });
    into.swap(waiting_);
    return !closed_ || !into.empty();
  }

  // Takes all commands without waiting; there may be none.
  void take_queued(std::vector<Command>& into) {
    const std::lock_guard lock(mutex_);
    into.swap(waiting_);
  }

  // Puts taken commands back, in front of those that were queued since.
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
