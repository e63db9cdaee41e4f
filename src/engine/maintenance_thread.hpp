// MaintenanceThread: Engine::run_maintenance() on a thread of its own, for as long as a server or a program runs.
// The store's callbacks post to it: stop() it, close the store, then let it go.
#pragma once

#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/io_context.hpp>
#include <thread>

#include "engine/engine.hpp"

namespace latchkey {

class MaintenanceThread {
 public:
  explicit MaintenanceThread(Engine& engine);
  // Stops first.
  ~MaintenanceThread();
  // Ends tend() and joins its thread. A second call does nothing.
  void stop();

 private:
  asio::io_context io_;
  asio::cancellation_signal stop_;
  std::thread thread_;
};

}  // namespace latchkey
