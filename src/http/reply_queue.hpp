// ReplyQueue: where answers from other threads wait for their loop.
//
// A sender takes a short lock and wakes the loop only when the mailbox was empty: a thousand answers after one commit
// cost one wake-up. On the loop's own thread an answer goes straight to its connection.
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

  // The loop's side of it. All calls on the loop's thread, but for wake().
  class Owner {
   public:
    virtual ~Owner() = default;
    // Any thread, under the mailbox's lock: arrange for drain() to be called.
    virtual void wake() = 0;
    // Answer now; false when this is no moment to (another connection's handler is on the stack): it is then posted.
    virtual bool deliver_inline(Entry& entry) = 0;
  };

  explicit ReplyQueue(Owner& owner) : owner_(&owner) {}

  void deliver(Ticket ticket, Response response) override;

  // The calling thread is the loop's from now on.
  void adopt_thread();
  // Moves all entries into `entries`, which must be empty; buffers are exchanged, not freed.
  void drain(std::vector<Entry>& entries);
  // From now on entries are dropped. The owner is not used any more once this returns.
  void close();

 private:
  std::mutex mutex_;
  Owner* owner_;  // null when closed; the loop's thread may read it without the lock
  std::vector<Entry> entries_;
};

}  // namespace latchkey::http
