// The part of Connection that reads requests.
#include <algorithm>
#include <boost/asio/buffer.hpp>

#include "http/connection.hpp"

namespace latchkey::http {
namespace {

constexpr std::size_t kReadBytesMin = 2 * 1024;    // space for one read
constexpr std::size_t kChunkReadBytes = 8 * 1024;  // space for one read of a chunked body
constexpr std::size_t kBodyStepBytes =
    64 * 1024;  // the body's string grows with the bytes that arrive, not to the announced length
constexpr std::size_t kLingerBytesMax = 4 * 1024 * 1024;  // limit of bytes ignored after the last response

}  // namespace

Connection::Progress Connection::read_request() { return state_ == State::head ? read_head() : read_body(); }

Connection::Progress Connection::read_head() {
  const HeadLimits& limits = loop_.shared().settings.head;
  // An incomplete head is parsed again only after another line has ended, so a client that sends single bytes does not
  // cause a parse for each byte.
  const std::size_t size_now = input_.bytes().size();
  const std::string_view fresh = input_.unscanned();
  const std::size_t size_before = size_now - fresh.size();
  const bool is_over_limit = size_now >= limits.bytes_max ||
                             (size_now > limits.request_line_bytes_max && size_before <= limits.request_line_bytes_max);
  input_.note_scanned();
  if (fresh.empty() || (size_before != 0 && !is_over_limit && !fresh.contains('\n'))) return Progress::incomplete;
  const Result<std::size_t> size = parse_head(input_.bytes(), limits, head_);
  if (!size) return reject(size.error());
  if (*size == 0) return Progress::incomplete;
  head_bytes_ = request_bytes_ = *size;
  has_head_ = true;
  return begin_body();
}

Connection::Progress Connection::begin_body() {
  const std::uint64_t length = head_.content_length.value_or(0);
  if (length == 0 && !head_.is_chunked) return Progress::complete;
  const Settings& settings = loop_.shared().settings;
  if (length > settings.body_bytes_max) return reject({Code::BODY_TOO_LARGE, "Content-Length exceeds the limit"});
  const std::string_view arrived = input_.bytes().substr(head_bytes_);
  if (!head_.is_chunked && arrived.size() >= length) {
    body_view_ = arrived.substr(0, length);
    request_bytes_ = head_bytes_ + length;
    return Progress::complete;
  }
  state_ = State::body;
  if (head_.expects_continue && arrived.empty()) out_.append("HTTP/1.1 100 Continue\r\n\r\n");
  body_.clear();
  if (head_.is_chunked) {
    chunks_ = ChunkedDecoder(settings.body_bytes_max);
  } else {
    body_.assign(arrived);
    body_bytes_read_ = arrived.size();
    request_bytes_ = head_bytes_ + arrived.size();
  }
  return read_body();
}

Connection::Progress Connection::read_body() {
  if (head_.is_chunked) return read_chunks();
  if (body_bytes_read_ < *head_.content_length) return Progress::incomplete;
  body_.resize(body_bytes_read_);
  body_view_ = body_;
  return Progress::complete;
}

Connection::Progress Connection::read_chunks() {
  const Result<std::size_t> used = chunks_.feed(input_.bytes().substr(head_bytes_), body_);
  if (!used) return reject(used.error());
  if (!chunks_.is_done()) {
    input_.cut(head_bytes_);
    return Progress::incomplete;
  }
  request_bytes_ = head_bytes_ + *used;
  body_view_ = body_;
  return Progress::complete;
}

void Connection::receive() {
  const Settings& settings = loop_.shared().settings;
  if (state_ == State::head) {
    if (loop_.is_stopping() && input_.is_empty()) {
      linger();
      return;
    }
    if (!input_.is_empty() || is_first_)
      arm(Phase::head, settings.head_deadline);
    else
      arm(Phase::idle, settings.idle_deadline);
  } else {
    const std::size_t promised = head_.is_chunked ? settings.body_bytes_max : *head_.content_length;
    arm(Phase::body, settings.body_deadline + time_for(promised));
  }
  wait_for_bytes();
}

void Connection::wait_for_bytes() {
  asio::mutable_buffer buffer;
  if (state_ == State::body && !head_.is_chunked) {
    // Reads directly into the body, and not beyond its end.
    const std::size_t left = *head_.content_length - body_bytes_read_;
    if (body_.size() - body_bytes_read_ < std::min(left, kBodyStepBytes))
      body_.resize(body_bytes_read_ + std::min(left, std::max(kBodyStepBytes, body_bytes_read_)));
    buffer = asio::buffer(body_.data() + body_bytes_read_, body_.size() - body_bytes_read_);
  } else {
    const std::size_t wanted = state_ == State::body ? kChunkReadBytes : kReadBytesMin;
    const bool is_moved = input_.room().size() < wanted;
    input_.make_room(wanted);
    // make_room() moved the bytes, so the views of head_ are invalid. Parsing the same bytes again restores them.
    if (is_moved && state_ == State::body) (void)parse_head(input_.bytes(), loop_.shared().settings.head, head_);
    buffer = asio::buffer(input_.room().data(), input_.room().size());
  }
  is_receiving_ = true;
  socket_.async_read_some(
      buffer, [this](const boost::system::error_code& error, std::size_t count) { on_received(error, count); });
}

void Connection::on_received(const boost::system::error_code& error, std::size_t count) {
  is_receiving_ = false;
  if (state_ == State::closed) {
    retire_if_quiet();
  } else if (state_ == State::closing) {
    // The last response is being sent. It may be a 408, because the deadline passed during this read.
  } else if (state_ == State::streaming) {
    on_read_ahead(error, count);
  } else if (state_ == State::stream_ended) {
    // An error of the client is reported again by the next read.
    input_.note_received(count);
    advance();
  } else if (error) {
    close();
  } else if (state_ == State::lingering) {
    lingered_bytes_ += count;
    input_.clear();
    if (lingered_bytes_ > kLingerBytesMax) return close();
    wait_for_bytes();
  } else {
    if (state_ == State::body && !head_.is_chunked)
      body_bytes_read_ += count;
    else
      input_.note_received(count);
    advance();
  }
}

}  // namespace latchkey::http
