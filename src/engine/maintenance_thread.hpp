// MaintenanceThread: runs Engine::run_maintenance() on a thread of its own while a server or a program runs.
// The store's callbacks post to it. Call stop(), close the store, and then destroy this object.
#pragma once

#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/io_context.hpp>
#include <thread>

#include "engine/engine.hpp"

namespace latchkey {

class MaintenanceThread {
 public:
  explicit MaintenanceThread(Engine& engine);
  // Calls stop().
  ~MaintenanceThread();
  // Cancels run_maintenance() and joins the thread. A second call does nothing.
  void stop();

 private:
  asio::io_context io_;
  asio::cancellation_signal stop_;
  std::thread thread_;
};

}  // namespace latchkey
