// Reply: sends the response to one request, once, from any thread, during the handler or later.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "http/body_stream.hpp"
#include "http/message.hpp"

namespace latchkey::http {

// Identifies one request of one connection. A ticket becomes invalid when its connection is closed.
struct Ticket {
  std::uint32_t slot = 0;
  std::uint32_t turn = 0;
};

// Limits of the buffer of one streamed body; see Settings.
struct StreamLimits {
  std::size_t high_water_bytes = 0;
  std::size_t bytes_max = 0;
};

// The receiver of responses: the ReplyQueue of a loop, or a recorder in tests.
class ReplySink {
 public:
  virtual ~ReplySink() = default;
  // Drops the response when the ticket is invalid. Any thread.
  virtual void deliver(Ticket ticket, Response response) = 0;
  // The stream is new, has bytes to send, or has ended. Any thread.
  virtual void notify(std::shared_ptr<StreamBuffer> stream) = 0;
  virtual StreamLimits stream_limits() const = 0;
};

// Move-only. A Reply destroyed without send() or start() sends 500 INTERNAL, so every request has a response. One
// thread at a time.
class Reply {
 public:
  Reply(std::shared_ptr<ReplySink> sink, Ticket ticket) : sink_(std::move(sink)), ticket_(ticket) {}
  Reply(Reply&& other) noexcept : sink_(std::move(other.sink_)), ticket_(other.ticket_) {}
  Reply& operator=(Reply&& other) noexcept;
  ~Reply() { abandon(); }

  // May be called once; a second call aborts the process. The response is dropped when the client has disconnected.
  void send(Response response);
  // Begins a response whose body is streamed, instead of send(). The body of `head` is the first piece of it.
  BodyStream start(Response head, StreamEvents events = {}, AtStop at_stop = AtStop::complete);

 private:
  void abandon();

  std::shared_ptr<ReplySink> sink_;  // null once sent or moved from
  Ticket ticket_;
};

// Called on a thread of the server, which it must not block. The handler may store the Reply and send it later.
using Handler = std::function<void(Request&, Reply)>;

}  // namespace latchkey::http
