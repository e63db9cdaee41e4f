// StreamBuffer: the bytes of one streamed body on their way from the producer to the connection.
//
// The producer writes under a lock and notifies the loop through the ReplySink, once per batch. The connection takes
// all pending bytes as one batch and sends it. The buffer counts the bytes of a batch until the kernel has accepted
// them.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>

#include "http/body_stream.hpp"
#include "http/reply.hpp"

namespace latchkey::http {

class StreamBuffer : public std::enable_shared_from_this<StreamBuffer> {
 public:
  // The body of `head` is the first piece of the streamed body.
  StreamBuffer(std::shared_ptr<ReplySink> sink, Ticket ticket, Response head, StreamEvents events, AtStop at_stop);

  // For the producer, on any thread.
  WriteState write(std::string bytes);
  void finish();
  void abandon();
  bool is_closed() const;

  // For the loop, on its thread.
  struct Batch {
    std::string bytes;
    bool is_last = false;
  };
  Ticket ticket() const { return ticket_; }
  AtStop at_stop() const { return at_stop_; }
  Response take_head() { return std::move(head_); }
  // Takes all pending bytes. The next write() notifies the loop again.
  Batch take();
  // The kernel has accepted so many bytes of the body. May call on_drain.
  void note_sent(std::size_t bytes);
  // The connection must be reset: the producer abandoned the stream, or the buffer exceeded its limit.
  bool is_broken() const;
  // The producer has written the whole body.
  bool is_finished() const;
  // Accepts no more bytes and calls on_closed, unless the producer has ended the stream itself. end() leaves the
  // pending bytes to be taken as the last batch; close() drops them.
  void end();
  void close();

  // For a sink whose loop has ended: as close(), without on_closed. Any thread.
  void drop();

 private:
  //   open ─► finished | abandoned | overflowed ─► closed
  enum class Phase { open, finished, abandoned, overflowed, closed };

  void notify() { sink_->notify(shared_from_this()); }

  const std::shared_ptr<ReplySink> sink_;
  const StreamLimits limits_;
  const Ticket ticket_;
  const AtStop at_stop_;
  Response head_;
  StreamEvents events_;  // the loop calls it without the lock; empty once closed

  mutable std::mutex mutex_;  // guards the members below
  Phase phase_ = Phase::open;
  std::string pending_;
  std::size_t buffered_bytes_ = 0;  // pending, or taken and not accepted by the kernel
  bool is_notified_ = true;         // the loop will call take(); Reply::start() notifies first
  bool is_drain_wanted_ = false;
};

}  // namespace latchkey::http
