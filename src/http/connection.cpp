#include "http/connection.hpp"

#include <spdlog/spdlog.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <exception>

#include "http/problem.hpp"
#include "http/stream_buffer.hpp"
#include "http/target.hpp"

namespace latchkey::http {
namespace {

constexpr std::size_t kFlushBytes = 64 * 1024;  // responses to pipelined requests are sent when they reach this size
constexpr std::size_t kBufferBytesMax = 16 * 1024;  // larger buffers are freed after use

// Returns the IPv4 address of an IPv4 client that connected to an IPv6 listener.
asio::ip::address plain(const asio::ip::address& address) {
  if (!address.is_v6() || !address.to_v6().is_v4_mapped()) return address;
  return asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6());
}

void release(std::string& buffer) {
  buffer.clear();
  if (buffer.capacity() > kBufferBytesMax) buffer.shrink_to_fit();
}

}  // namespace

void Connection::open(Socket socket) {
  socket_ = std::move(socket);
  boost::system::error_code error;
  socket_.set_option(asio::ip::tcp::no_delay(true), error);
  const asio::ip::address peer = plain(socket_.remote_endpoint(error).address());
  remote_ = peer.to_string();
  is_loopback_ = !error && peer.is_loopback();
  state_ = State::head;
  phase_ = Phase::none;
  is_first_ = is_keep_alive_ = true;
  has_head_ = is_deferred_ = is_close_delimited_ = false;
  lingered_bytes_ = batch_bytes_ = 0;
}

void Connection::serve(Socket socket) {
  open(std::move(socket));
  advance();
}

void Connection::refuse(Socket socket) {
  open(std::move(socket));
  reject({Code::OVERLOADED, "the server has reached its limit of connections"}, std::chrono::seconds{1});
  advance();
}

void Connection::advance() {
  while (!is_sending_) {
    switch (state_) {
      case State::head:
      case State::body:
        if (const Progress progress = read_request(); progress == Progress::complete) {
          dispatch();
        } else if (progress == Progress::incomplete) {
          flush();
          if (!is_sending_ && state_ != State::closed) receive();
          return;
        }
        if (out_.size() >= kFlushBytes) flush();
        break;
      case State::streaming:
        advance_stream();
        if (state_ == State::streaming) return;
        break;
      case State::stream_ended:
        flush();
        if (is_sending_ || state_ == State::closed) return;
        leave_stream();
        if (state_ != State::head) return;
        break;
      case State::closing:
        flush();
        if (is_sending_ || state_ == State::closed) return;
        linger();
        return;
      case State::handling:
        flush();
        return;
      case State::lingering:
      case State::closed:
        return;
    }
  }
}

// ---- responding ----

void Connection::dispatch() {
  state_ = State::handling;
  ++turn_;
  disarm();
  Shared& shared = loop_.shared();
  in_handler_ = true;
  Request request = view_request();
  if (shared.in_flight.load(std::memory_order_relaxed) >= shared.settings.in_flight_max) {
    answer(turn_, make_problem({Code::OVERLOADED, ""}, {}, std::chrono::seconds{1}));
  } else if (auto preflight = shared.cors.answer_preflight(request)) {
    answer(turn_, std::move(*preflight));
  } else {
    call_handler(request);
  }
  in_handler_ = false;
  if (state_ == State::handling) {
    is_deferred_ = true;
    shared.in_flight.fetch_add(1, std::memory_order_relaxed);
  } else {
    finish_request();
  }
}

void Connection::call_handler(Request& request) {
  loop_.enter_handler(*this);
  try {
    loop_.shared().handler(request, Reply(loop_.reply_queue(), Ticket{slot_, turn_}));
  } catch (const std::exception& thrown) {
    // The destructor of the Reply has sent 500, unless the handler moved the Reply elsewhere.
    spdlog::error("http: a handler threw: {}", thrown.what());
  }
  loop_.leave_handler();
}

Request Connection::view_request() {
  const Target target = split_target(head_.target);
  const bool is_owned = body_view_.data() == body_.data() && !body_view_.empty();
  return Request{.method = head_.method,
                 .target = head_.target,
                 .path = target.path,
                 .query = target.query,
                 .fields = head_.fields,
                 .body = body_view_,
                 .owned_body = is_owned ? &body_ : nullptr,
                 .remote = remote_,
                 .is_loopback = is_loopback_};
}

void Connection::answer(std::uint32_t turn, Response response) {
  if (state_ != State::handling || turn != turn_) return;
  is_keep_alive_ = head_.is_keep_alive && !loop_.is_stopping();
  append(response);
  state_ = is_keep_alive_ ? State::head : State::closing;
  if (in_handler_) return;  // dispatch() continues
  is_deferred_ = false;
  loop_.shared().in_flight.fetch_sub(1, std::memory_order_relaxed);
  finish_request();
  advance();
}

void Connection::finish_request() {
  input_.consume(request_bytes_);
  has_head_ = is_first_ = false;
  body_view_ = {};
  if (!body_.empty()) release(body_);
  if (input_.is_empty()) input_.clear();
}

void Connection::append(const Response& response) {
  append_response(out_, response,
                  {.omits_body = has_head_ && head_.method == "HEAD",
                   .persistence = persistence(),
                   .date = loop_.date(),
                   .extra_lines = cors_lines()});
}

std::string Connection::cors_lines() const {
  if (!has_head_ || !loop_.shared().cors.is_on()) return {};
  return loop_.shared().cors.header_lines(find_field(head_.fields, "origin").value_or(""));
}

Persistence Connection::persistence() const {
  if (!is_keep_alive_) return Persistence::close;
  return head_.is_http_1_0 ? Persistence::keep_alive : Persistence::persistent;
}

Connection::Progress Connection::reject(const Error& error, std::optional<Duration> retry_after) {
  is_keep_alive_ = false;
  append(make_problem(error, {}, retry_after));
  state_ = State::closing;
  return Progress::refused;
}

// ---- sending ----

Duration Connection::time_for(std::size_t bytes) const {
  return std::chrono::seconds{bytes / std::max<std::size_t>(loop_.shared().settings.bytes_per_second_min, 1)};
}

void Connection::flush() {
  if (out_.empty() || is_sending_) return;
  const ssize_t sent = ::send(socket_.native_handle(), out_.data(), out_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) return close();
  sent_bytes_ = sent < 0 ? 0 : static_cast<std::size_t>(sent);
  if (sent_bytes_ < out_.size()) {
    sending_.swap(out_);
    arm(Phase::write, loop_.shared().settings.write_deadline + time_for(sending_.size()));
    send_rest();
  }
  release(out_);
}

void Connection::send_rest() {
  is_sending_ = true;
  const auto rest = asio::buffer(sending_.data() + sent_bytes_, sending_.size() - sent_bytes_);
  socket_.async_write_some(rest, [this](const boost::system::error_code& error, std::size_t count) {
    is_sending_ = false;
    if (state_ == State::closed) return retire_if_quiet();
    if (error) return close();
    sent_bytes_ += count;
    if (sent_bytes_ < sending_.size()) return send_rest();
    release(sending_);
    disarm();
    advance();
  });
}

// ---- ending ----

void Connection::linger() {
  // When a socket is closed with unread bytes, the kernel resets the connection and the client may lose the response.
  state_ = State::lingering;
  boost::system::error_code error;
  socket_.shutdown(Socket::shutdown_send, error);
  if (error) return close();
  arm(Phase::linger, loop_.shared().settings.linger_deadline);
  if (is_receiving_) return;
  input_.clear();
  wait_for_bytes();
}

void Connection::expire() {
  const bool is_reading = phase_ == Phase::body || (phase_ == Phase::head && !input_.is_empty());
  phase_ = Phase::none;
  if (!is_reading) return close();
  reject({Code::REQUEST_TIMEOUT,
          state_ == State::body ? "the body did not arrive in time" : "the head did not arrive in time"});
  advance();
}

void Connection::begin_stop() {
  if (state_ == State::head && input_.is_empty() && !is_sending_) return close();
  if (state_ != State::streaming) return;
  end_stream_at_stop();
  advance();
}

void Connection::close() {
  if (state_ == State::closed) return;
  if (is_deferred_) loop_.shared().in_flight.fetch_sub(1, std::memory_order_relaxed);
  is_deferred_ = false;
  if (stream_ || (is_close_delimited_ && state_ == State::closing)) prepare_reset();
  state_ = State::closed;
  ++turn_;
  loop_.deadlines().cancel(*this);
  boost::system::error_code ignored;
  socket_.close(ignored);
  if (stream_) std::exchange(stream_, nullptr)->close();
  retire_if_quiet();
}

void Connection::retire_if_quiet() {
  if (is_receiving_ || is_sending_) return;
  input_.clear();
  release(body_);
  release(out_);
  release(sending_);
  loop_.retire(*this);
}

void Connection::arm(Phase phase, Duration after) {
  if (phase_ == phase) return;
  phase_ = phase;
  loop_.deadlines().set(*this, loop_.shared().clock.elapsed(), after);
}

void Connection::disarm() {
  phase_ = Phase::none;
  loop_.deadlines().suspend(*this);
}

}  // namespace latchkey::http
