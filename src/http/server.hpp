// Server: HTTP/1.1 on a port. Reads requests strictly (head.hpp), hands each to the handler and writes the answers in
// order.
//
// The handler is called on the server's threads, for different connections at once; it must not block. Everything that
// goes wrong before it (framing, limits, deadlines) is answered with a problem (problem.hpp) and the connection closed.
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
  // Has the port when it returns; who connects waits for serve(). LISTEN_FAILED when the address is not one or cannot
  // be had. `clock` must outlive it.
  static Result<std::unique_ptr<Server>> bind(Settings settings, Handler handler, Clock& clock);
  // Once.
  void serve();
  // Both: serves when it returns.
  static Result<std::unique_ptr<Server>> start(Settings settings, Handler handler, Clock& clock);
  // Stops first.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  std::uint16_t port() const { return port_; }
  // Accepts no more, closes idle connections, lets requests in flight be answered (at most settings.stop_deadline),
  // then returns with all threads joined. Later replies are dropped. Not from a handler; a second call does nothing.
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
