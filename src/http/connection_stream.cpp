// The part of Connection that sends streamed bodies.
//
// While a stream is open, the connection also reads. That detects a client that disconnects between two writes, and
// stores pipelined requests for later.
#include <boost/asio/socket_base.hpp>
#include <utility>

#include "http/connection.hpp"
#include "http/stream_buffer.hpp"

namespace latchkey::http {
namespace {

constexpr std::size_t kReadAheadBytes = 16 * 1024;  // limit of pipelined bytes that are read during a stream

}  // namespace

void Connection::on_stream(const std::shared_ptr<StreamBuffer>& stream) {
  if (stream->ticket().turn != turn_) return stream->close();
  if (state_ == State::handling)
    begin_stream(stream);
  else if (stream_ != stream)
    return;
  if (stream_ && stream_->is_broken()) return close();
  advance();
}

void Connection::begin_stream(const std::shared_ptr<StreamBuffer>& stream) {
  const Response head = stream->take_head();
  const bool has_body = head_.method != "HEAD" && head.status != 204 && head.status != 304;
  is_close_delimited_ = head_.is_http_1_0;
  is_keep_alive_ = head_.is_keep_alive && !head_.is_http_1_0 && !loop_.is_stopping();
  append_stream_head(out_, head, is_close_delimited_ ? BodyEnd::close : BodyEnd::last_chunk,
                     {.persistence = persistence(), .date = loop_.date(), .extra_lines = cors_lines()});
  is_deferred_ = false;
  loop_.shared().in_flight.fetch_sub(1, std::memory_order_relaxed);
  finish_request();
  if (has_body) {
    stream_ = stream;
    state_ = State::streaming;
    if (loop_.is_stopping()) end_stream_at_stop();
  } else {
    state_ = is_keep_alive_ ? State::head : State::closing;
    stream->close();
  }
}

void Connection::advance_stream() {
  note_batch_sent();
  const StreamBuffer::Batch batch = stream_->take();
  if (is_close_delimited_)
    out_.append(batch.bytes);
  else
    append_chunk(out_, batch.bytes);
  if (batch.is_last) return finish_stream();
  batch_bytes_ = batch.bytes.size();
  flush();
  if (state_ != State::streaming) return;
  if (!is_sending_) note_batch_sent();
  read_ahead();
}

void Connection::note_batch_sent() {
  if (batch_bytes_ != 0) stream_->note_sent(std::exchange(batch_bytes_, 0));
}

void Connection::finish_stream() {
  if (!is_close_delimited_) append_last_chunk(out_);
  if (loop_.is_stopping()) is_keep_alive_ = false;
  state_ = is_keep_alive_ ? State::stream_ended : State::closing;
  std::exchange(stream_, nullptr)->close();
}

void Connection::end_stream_at_stop() {
  if (stream_->at_stop() == AtStop::end) stream_->end();
}

void Connection::leave_stream() {
  // A read writes to input_, which the next request must own alone.
  if (is_receiving_) {
    boost::system::error_code ignored;
    socket_.cancel(ignored);
  } else {
    state_ = State::head;
  }
}

void Connection::read_ahead() {
  if (!is_receiving_ && input_.bytes().size() < kReadAheadBytes) wait_for_bytes();
}

void Connection::on_read_ahead(const boost::system::error_code& error, std::size_t count) {
  input_.note_received(count);
  if (!error) return read_ahead();
  // A client may close its sending side after the request. It receives a body that is complete already, but a client
  // that has disconnected looks the same, so a stream without an end is closed.
  if (!stream_->is_finished()) close();
}

void Connection::prepare_reset() {
  // The end of the connection would look like the end of the body.
  boost::system::error_code ignored;
  socket_.set_option(asio::socket_base::linger(true, 0), ignored);
}

}  // namespace latchkey::http
