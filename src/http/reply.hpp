// Reply: the right to answer one request, once, from any thread, now or later.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "http/message.hpp"

namespace latchkey::http {

// Names one request of one connection. A ticket whose request is over (its connection closed) leads nowhere.
struct Ticket {
  std::uint32_t slot = 0;
  std::uint32_t turn = 0;
};

// Where replies go. The server's is the ReplyQueue; tests may have their own.
class ReplySink {
 public:
  virtual ~ReplySink() = default;
  // Any thread. Drops the response when the ticket's request is over.
  virtual void deliver(Ticket ticket, Response response) = 0;
};

// Move-only. Destroyed without send(), it answers 500 INTERNAL: no request stays without an answer. One thread at a
// time.
class Reply {
 public:
  Reply(std::shared_ptr<ReplySink> sink, Ticket ticket) : sink_(std::move(sink)), ticket_(ticket) {}
  Reply(Reply&& other) noexcept : sink_(std::move(other.sink_)), ticket_(other.ticket_) {}
  Reply& operator=(Reply&& other) noexcept;
  ~Reply() { abandon(); }

  // Once: a second send() aborts the process. Never fails: if the client has gone, the response is dropped.
  void send(Response response);

 private:
  void abandon();

  std::shared_ptr<ReplySink> sink_;  // null once sent or moved from
  Ticket ticket_;
};

// Called on one of the server's threads, which it must not block. May keep the Reply and answer later.
using Handler = std::function<void(Request&, Reply)>;

}  // namespace latchkey::http
