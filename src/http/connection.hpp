// Connection: reads the requests of one client one after another and responds to them in order.
//
//   head ──► body ──► handling ──► head …        after a fault, a deadline or Connection: close, from each state:
//                        │           ▲            ──► closing ──► lingering ──► closed
//                        ▼           │
//                    streaming ──► stream_ended
//
// A connection parses the next request only after it has responded to the previous one; pipelined bytes wait in the
// buffer. Responses to pipelined requests are sent together. Each request has a turn number. A reply whose turn is not
// the current one is dropped, because its connection was closed in the meantime. A connection is used on its loop's
// thread only. The loop reuses the object for another client after it is closed.
#pragma once

#include <cstdint>
#include <memory>
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
  // Responds with 503 and closes, because the server has reached its limit of connections.
  void refuse(Socket socket);
  // Drops the response unless `turn` is the number of the request being handled.
  void answer(std::uint32_t turn, Response response);
  // The stream of the current request is new, has bytes to send, or has ended. Closes the streams of earlier requests.
  void on_stream(const std::shared_ptr<StreamBuffer>& stream);
  // Called when the deadline has passed.
  void expire();
  // The server stops: closes an idle connection, and ends a stream that does not end by itself.
  void begin_stop();
  void close();

 private:
  enum class State { head, body, handling, streaming, stream_ended, closing, lingering, closed };
  enum class Phase { none, idle, head, body, write, linger };  // the operation that the deadline limits
  enum class Progress { complete, incomplete, refused };

  void open(Socket socket);
  // Processes the bytes that have arrived, then starts the operation whose completion calls it again.
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
  std::string cors_lines() const;

  void begin_stream(const std::shared_ptr<StreamBuffer>& stream);
  // Sends one batch of the stream. Further bytes notify the loop again, so one stream cannot occupy the loop.
  void advance_stream();
  void note_batch_sent();
  void finish_stream();
  void end_stream_at_stop();
  // Continues with the next request, once no read is pending.
  void leave_stream();
  void read_ahead();
  void on_read_ahead(const boost::system::error_code& error, std::size_t count);
  // Makes close() send a reset instead of an orderly end.
  void prepare_reset();

  void receive();
  void wait_for_bytes();
  void on_received(const boost::system::error_code& error, std::size_t count);
  // Offers the formatted responses to the kernel. The rest is sent asynchronously.
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
  std::uint32_t turn_ = 0;  // number of the current request; a Reply carries it

  State state_ = State::closed;
  Phase phase_ = Phase::none;
  bool is_receiving_ = false;
  bool is_sending_ = false;
  bool in_handler_ = false;
  bool is_deferred_ = false;  // the handler returned without a response; counted in Shared::in_flight
  bool has_head_ = false;     // head_ is the head of the current request
  bool is_keep_alive_ = true;
  bool is_first_ = true;
  bool is_close_delimited_ = false;  // the end of the connection is the end of the streamed body
  bool is_loopback_ = false;
  std::string remote_;

  Input input_;
  Head head_;
  std::size_t head_bytes_ = 0;
  std::size_t request_bytes_ = 0;  // size of the request within input_
  std::string_view body_view_;
  std::string body_;  // used only when the body did not arrive together with its head
  std::size_t body_bytes_read_ = 0;
  ChunkedDecoder chunks_;

  std::string out_;      // formatted responses, not yet offered to the kernel
  std::string sending_;  // being sent asynchronously
  std::size_t sent_bytes_ = 0;
  std::size_t lingered_bytes_ = 0;

  std::shared_ptr<StreamBuffer> stream_;  // set while streaming
  std::size_t batch_bytes_ = 0;           // bytes of the body in the batch being sent
};

}  // namespace latchkey::http
