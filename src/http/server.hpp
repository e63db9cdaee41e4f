// Server: an HTTP/1.1 server on one port. It parses requests strictly (head.hpp), calls the handler for each and sends
// the responses in order.
//
// The server's threads call the handler concurrently for different connections; the handler must not block. When a
// request is malformed, exceeds a limit or misses a deadline, the server responds with a problem (problem.hpp) and
// closes the connection without calling the handler.
#pragma once

#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "http/reply.hpp"
#include "http/settings.hpp"

namespace latchkey::http {

class Loop;
struct Shared;

class Server {
 public:
  // Binds the port. Clients can connect, and wait until serve(). Fails with LISTEN_FAILED when the address is not an IP
  // address or cannot be bound. `clock` must outlive the server.
  static Result<std::unique_ptr<Server>> bind(Settings settings, Handler handler, Clock& clock);
  // Starts the threads. May be called once.
  void serve();
  // Calls bind() and serve().
  static Result<std::unique_ptr<Server>> start(Settings settings, Handler handler, Clock& clock);
  // Calls stop().
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  std::uint16_t port() const { return port_; }
  // Stops accepting, closes idle connections, waits for the responses to requests in flight (at most
  // settings.stop_deadline) and joins all threads. Later replies are dropped. Must not be called by a handler. A second
  // call does nothing.
  void stop();

 private:
  Server(Settings settings, Handler handler, Clock& clock);
  Result<void> listen();

  std::unique_ptr<Shared> shared_;
  std::vector<std::unique_ptr<Loop>> loops_;
  std::vector<std::thread> threads_;
  std::uint16_t port_ = 0;
};

}  // namespace latchkey::http
