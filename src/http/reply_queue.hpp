// ReplyQueue: the queue of responses that other threads send to a loop.
//
// A sender holds the lock for one push and wakes the loop only when the queue was empty. A thousand responses after one
// commit cost one wake-up. On the loop's own thread a response bypasses the queue.
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

  explicit ReplyQueue(Owner& owner) : owner_(&owner) {}

  void deliver(Ticket ticket, Response response) override;

  // Declares that the calling thread is the loop's thread.
  void adopt_thread();
  // Moves all entries into `entries`, which must be empty. The vectors are swapped, so neither is freed.
  void drain(std::vector<Entry>& entries);
  // Drops all present and later entries. The queue does not use its owner after this call.
  void close();

 private:
  std::mutex mutex_;
  Owner* owner_;  // null when closed; the loop's thread reads it without the lock
  std::vector<Entry> entries_;
};

}  // namespace latchkey::http
