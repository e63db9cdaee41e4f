#include "http/loop.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/socket_base.hpp>

#include "http/connection.hpp"
#include "http/stream_buffer.hpp"
#include "http/wire.hpp"

namespace latchkey::http {
namespace {

using ReusePort = asio::detail::socket_option::boolean<SOL_SOCKET, SO_REUSEPORT>;

// Limit of connections that receive a 503 at the same time. Connections beyond it are closed without a response.
constexpr std::size_t kRefusedMax = 256;

}  // namespace

// UNSAFE_IO: only the loop's thread uses the sockets, so the reactor needs no locks. post() is safe from other threads.
Loop::Loop(Shared& shared)
    : shared_(shared),
      io_(BOOST_ASIO_CONCURRENCY_HINT_UNSAFE_IO),
      acceptor_(io_),
      deadlines_(shared.settings.tick, shared.clock.elapsed()),
      reply_queue_(std::make_shared<ReplyQueue>(
          static_cast<ReplyQueue::Owner&>(*this),
          StreamLimits{shared.settings.stream_high_water_bytes, shared.settings.stream_bytes_max})) {}

Loop::~Loop() {
  reply_queue_->close();
  connections_.clear();
}

Result<Tcp::endpoint> Loop::listen(const Tcp::endpoint& at) {
  boost::system::error_code error;
  const auto step = [&](auto&& action) {
    if (!error) action();
  };
  step([&] { acceptor_.open(at.protocol(), error); });
  step([&] { acceptor_.set_option(asio::socket_base::reuse_address(true), error); });
  step([&] { acceptor_.set_option(ReusePort(true), error); });
  step([&] { acceptor_.bind(at, error); });
  step([&] { acceptor_.listen(asio::socket_base::max_listen_connections, error); });
  Tcp::endpoint bound;
  step([&] { bound = acceptor_.local_endpoint(error); });
  if (error) return fail(Code::LISTEN_FAILED, "cannot listen: " + error.message());
  return bound;
}

void Loop::run() {
  reply_queue_->adopt_thread();
  on_tick();
  asio::co_spawn(io_, run_ticks(), asio::detached);
  accept();
  io_.run();
  reply_queue_->close();
}

void Loop::begin_stop() {
  asio::post(io_, [this] { stop_accepting(); });
}

void Loop::stop_accepting() {
  is_stopping_ = true;
  stop_by_ = shared_.clock.elapsed() + shared_.settings.stop_deadline;
  boost::system::error_code ignored;
  acceptor_.close(ignored);
  for (const auto& connection : connections_) connection->begin_stop();
  stop_if_empty();
}

void Loop::stop_if_empty() {
  // An accept that completed at the last moment owns its socket. The loop must run its handler, or the client would
  // wait without an end.
  if (is_stopping_ && !is_accepting_ && vacant_slots_.size() == connections_.size()) io_.stop();
}

void Loop::accept() {
  is_accepting_ = true;
  acceptor_.async_accept(io_, [this](boost::system::error_code error, Socket socket) {
    is_accepting_ = false;
    if (is_stopping_) return stop_if_empty();
    accept_failed_ = static_cast<bool>(error);
    if (error) return;
    admit(std::move(socket));
    accept();
  });
}

void Loop::admit(Socket socket) {
  const std::size_t others = shared_.connections.fetch_add(1, std::memory_order_relaxed);
  const std::size_t max = shared_.settings.connections_max;
  if (others >= max + kRefusedMax) {
    shared_.connections.fetch_sub(1, std::memory_order_relaxed);
    return;
  }
  Connection& connection = vacant_connection();
  if (others >= max)
    connection.refuse(std::move(socket));
  else
    connection.serve(std::move(socket));
}

Connection& Loop::vacant_connection() {
  if (vacant_slots_.empty()) {
    const auto slot = static_cast<std::uint32_t>(connections_.size());
    connections_.push_back(std::make_unique<Connection>(*this, Socket(io_), slot));
    return *connections_.back();
  }
  const std::uint32_t slot = vacant_slots_.back();
  vacant_slots_.pop_back();
  return *connections_[slot];
}

void Loop::retire(Connection& connection) {
  shared_.connections.fetch_sub(1, std::memory_order_relaxed);
  vacant_slots_.push_back(connection.slot());
  stop_if_empty();
}

void Loop::wake() {
  asio::post(io_, [this] { drain(); });
}

bool Loop::deliver_inline(ReplyQueue::Entry& entry) {
  // The handler of another connection is on the stack. Responding here could nest handlers without a limit.
  if (handling_ != nullptr && handling_->slot() != entry.ticket.slot) return false;
  answer(entry);
  return true;
}

void Loop::drain() {
  reply_queue_->drain(entries_, streams_);
  for (ReplyQueue::Entry& entry : entries_) answer(entry);
  entries_.clear();
  for (const auto& stream : streams_) connections_[stream->ticket().slot]->on_stream(stream);
  streams_.clear();
}

void Loop::answer(ReplyQueue::Entry& entry) {
  connections_[entry.ticket.slot]->answer(entry.ticket.turn, std::move(entry.response));
}

Task<void> Loop::run_ticks() {
  for (;;) {
    co_await shared_.clock.wait(shared_.settings.tick);
    on_tick();
  }
}

void Loop::on_tick() {
  const Instant second = std::chrono::floor<std::chrono::seconds>(shared_.clock.now());
  if (second != date_second_) {
    date_ = format_http_date(second);
    date_second_ = second;
  }
  deadlines_.advance(shared_.clock.elapsed(), [](Deadlines::Entry& entry) { Connection::of(entry).expire(); });
  if (accept_failed_ && !is_stopping_) {
    accept_failed_ = false;
    accept();
  }
  if (is_stopping_ && shared_.clock.elapsed() >= stop_by_) {
    for (const auto& connection : connections_) connection->close();
    io_.stop();
  }
}

}  // namespace latchkey::http
