// Reply: sends the response to one request, once, from any thread, during the handler or later.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "http/message.hpp"

namespace latchkey::http {

// Identifies one request of one connection. A ticket becomes invalid when its connection is closed.
struct Ticket {
  std::uint32_t slot = 0;
  std::uint32_t turn = 0;
};

// The receiver of responses: the ReplyQueue of a loop, or a recorder in tests.
class ReplySink {
 public:
  virtual ~ReplySink() = default;
  // Drops the response when the ticket is invalid. Any thread.
  virtual void deliver(Ticket ticket, Response response) = 0;
};

// Move-only. A Reply destroyed without send() sends 500 INTERNAL, so every request has a response. One thread at a
// time.
class Reply {
 public:
  Reply(std::shared_ptr<ReplySink> sink, Ticket ticket) : sink_(std::move(sink)), ticket_(ticket) {}
  Reply(Reply&& other) noexcept : sink_(std::move(other.sink_)), ticket_(other.ticket_) {}
  Reply& operator=(Reply&& other) noexcept;
  ~Reply() { abandon(); }

  // May be called once; a second call aborts the process. The response is dropped when the client has disconnected.
  void send(Response response);

 private:
  void abandon();

  std::shared_ptr<ReplySink> sink_;  // null once sent or moved from
  Ticket ticket_;
};

// Called on a thread of the server, which it must not block. The handler may store the Reply and send it later.
using Handler = std::function<void(Request&, Reply)>;

}  // namespace latchkey::http
