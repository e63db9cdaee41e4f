// ReplyQueue: the queue of responses and of streams with new bytes that other threads send to a loop.
//
// A sender holds the lock for one push and wakes the loop only when the queue was empty. A thousand responses after one
// commit cost one wake-up. On the loop's own thread a complete response bypasses the queue.
#pragma once

#include <functional>
#include <mutex>
#include <vector>

#include "http/reply.hpp"

namespace latchkey::http {

class ReplyQueue final : public ReplySink {
 public:
  struct Entry {
    Ticket ticket;
    Response response;
  };

  // The loop that drains the queue. Called on the loop's thread, except wake().
  class Owner {
   public:
    virtual ~Owner() = default;
    // Schedules a call of drain(). Called on any thread, with the lock held.
    virtual void wake() = 0;
    // Sends the response at once. Returns false while the handler of another connection is on the stack; the response
    // is queued then.
    virtual bool deliver_inline(Entry& entry) = 0;
  };

  ReplyQueue(Owner& owner, StreamLimits limits) : owner_(&owner), limits_(limits) {}

  void deliver(Ticket ticket, Response response) override;
  // Always queued, also on the loop's own thread, so that a callback of a stream may write to it.
  void notify(std::shared_ptr<StreamBuffer> stream) override;
  StreamLimits stream_limits() const override { return limits_; }

  // Declares that the calling thread is the loop's thread.
  void adopt_thread();
  // Moves all entries into `entries` and all notified streams into `streams`. Both must be empty. The vectors are
  // swapped, so none is freed.
  void drain(std::vector<Entry>& entries, std::vector<std::shared_ptr<StreamBuffer>>& streams);
  // Drops all present and later entries and streams. The queue does not use its owner after this call. Called on the
  // loop's thread, or after it has ended.
  void close();

 private:
  bool has_one_item() const { return entries_.size() + streams_.size() == 1; }

  std::mutex mutex_;
  Owner* owner_;  // null when closed; the loop's thread reads it without the lock
  const StreamLimits limits_;
  std::vector<Entry> entries_;
  std::vector<std::shared_ptr<StreamBuffer>> streams_;
};

}  // namespace latchkey::http
