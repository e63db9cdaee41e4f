#include "http/server.hpp"

#include <algorithm>

#include "http/connection.hpp"
#include "http/loop.hpp"

namespace latchkey::http {
namespace {

// The loops share the port by SO_REUSEPORT, which also allows a second server of the same user to bind it and to
// receive half of the connections. A bind without SO_REUSEPORT fails when another server uses the port.
Result<void> check_unused(const Tcp::endpoint& at) {
  asio::io_context io;
  Acceptor probe(io);
  boost::system::error_code error;
  probe.open(at.protocol(), error);
  if (!error) probe.set_option(asio::socket_base::reuse_address(true), error);
  if (!error) probe.bind(at, error);
  if (error) return fail(Code::LISTEN_FAILED, "cannot listen: " + error.message());
  return {};
}

}  // namespace

Server::Server(Settings settings, Handler handler, Clock& clock)
    : shared_(std::make_unique<Shared>(std::move(settings), std::move(handler), clock)) {}

Server::~Server() { stop(); }

Result<std::unique_ptr<Server>> Server::bind(Settings settings, Handler handler, Clock& clock) {
  std::unique_ptr<Server> server(new Server(std::move(settings), std::move(handler), clock));
  if (const Result<void> listening = server->listen(); !listening) return std::unexpected(listening.error());
  return server;
}

void Server::serve() {
  for (const auto& loop : loops_) threads_.emplace_back([&loop = *loop] { loop.run(); });
}

Result<std::unique_ptr<Server>> Server::start(Settings settings, Handler handler, Clock& clock) {
  auto server = bind(std::move(settings), std::move(handler), clock);
  if (server) (*server)->serve();
  return server;
}

Result<void> Server::listen() {
  const Settings& settings = shared_->settings;
  boost::system::error_code error;
  const auto address = asio::ip::make_address(settings.address, error);
  if (error) return fail(Code::LISTEN_FAILED, "not an IP address: " + settings.address);
  Tcp::endpoint at(address, settings.port);
  if (const Result<void> unused = check_unused(at); !unused) return unused;
  for (unsigned i = 0; i < std::max(settings.threads, 1U); ++i) {
    loops_.push_back(std::make_unique<Loop>(*shared_));
    const Result<Tcp::endpoint> bound = loops_.back()->listen(at);
    if (!bound) return std::unexpected(bound.error());
    at = *bound;
  }
  port_ = at.port();
  return {};
}

void Server::stop() {
  if (threads_.empty()) return;
  for (const auto& loop : loops_) loop->begin_stop();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

}  // namespace latchkey::http
