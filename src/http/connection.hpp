// Connection: one client's requests, read one after another and answered in order.
//
//   head ──► body ──► handling ──► head …        and from each, on a fault, a deadline or Connection: close:
//                                                 ──► closing ──► lingering ──► closed
//
// The next request is looked at only when the previous one was answered; what arrived early waits in the buffer.
// Answers to requests that were already there are written together. A connection closed while its answer is outstanding
// forgets it: the late reply's turn does not match any more. Lives on its loop's thread only, and is reused for another
// client afterwards.
#pragma once

#include <cstdint>
#include <string>

#include "http/chunked.hpp"
#include "http/head.hpp"
#include "http/input.hpp"
#include "http/loop.hpp"
#include "http/wire.hpp"

namespace latchkey::http {

class Connection : private Deadlines::Entry {
 public:
  Connection(Loop& loop, Socket socket, std::uint32_t slot) : loop_(loop), socket_(std::move(socket)), slot_(slot) {}
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  std::uint32_t slot() const { return slot_; }
  static Connection& of(Deadlines::Entry& entry) { return static_cast<Connection&>(entry); }

  void serve(Socket socket);
  // Answers 503 and closes: there are too many already.
  void refuse(Socket socket);
  // Ignored unless `turn` is that of the request being handled.
  void answer(std::uint32_t turn, Response response);
  // Its deadline has passed.
  void expire();
  void close_if_idle();
  void close();

 private:
  enum class State { head, body, handling, closing, lingering, closed };
  enum class Phase { none, idle, head, body, write, linger };  // what the deadline is for
  enum class Progress { complete, incomplete, refused };

  void open(Socket socket);
  // Does all that can be done with the bytes at hand, then waits for the next event.
  void advance();
  Progress read_request();
  Progress read_head();
  Progress begin_body();
  Progress read_body();
  Progress read_chunks();
  void dispatch();
  void call_handler(Request& request);
  Request view_request();
  void finish_request();

  Progress reject(const Error& error, std::optional<Duration> retry_after = std::nullopt);
  void append(const Response& response);
  Persistence persistence() const;

  void receive();
  void wait_for_bytes();
  void on_received(const boost::system::error_code& error, std::size_t count);
  // Sends what is formatted; what the kernel does not take goes on in the background.
  void flush();
  void send_rest();
  void linger();
  void retire_if_quiet();
  Duration time_for(std::size_t bytes) const;
  void arm(Phase phase, Duration after);
  void disarm();

  Loop& loop_;
  Socket socket_;
  const std::uint32_t slot_;
  std::uint32_t turn_ = 0;  // counts requests; a Reply carries the one that it answers

  State state_ = State::closed;
  Phase phase_ = Phase::none;
  bool is_receiving_ = false;
  bool is_sending_ = false;
  bool in_handler_ = false;
  bool is_deferred_ = false;  // the handler returned without an answer: counted in Shared::in_flight
  bool has_head_ = false;     // head_ is the current request's
  bool keeps_alive_ = true;
  bool is_first_ = true;
  bool is_loopback_ = false;
  std::string remote_;

  Input input_;
  Head head_;
  std::size_t head_bytes_ = 0;
  std::size_t request_bytes_ = 0;  // of input_: what the request takes up there
  std::string_view body_view_;
  std::string body_;  // only a body that did not arrive together with its head
  std::size_t body_bytes_read_ = 0;
  ChunkedDecoder chunks_;

  std::string out_;      // formatted, not yet offered to the kernel
  std::string sending_;  // being sent in the background
  std::size_t sent_bytes_ = 0;
  std::size_t lingered_bytes_ = 0;
};

}  // namespace latchkey::http
