#include "engine/maintenance_thread.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <exception>

namespace latchkey {

MaintenanceThread::MaintenanceThread(Engine& engine) {
  asio::co_spawn(io_, engine.run_maintenance(),
                 asio::bind_cancellation_slot(stop_.slot(), [](std::exception_ptr error) {
                   if (error) std::rethrow_exception(error);
                 }));
  thread_ = std::thread([this] { io_.run(); });
}

MaintenanceThread::~MaintenanceThread() { stop(); }

void MaintenanceThread::stop() {
  if (!thread_.joinable()) return;
  asio::post(io_, [this] { stop_.emit(asio::cancellation_type::terminal); });
  thread_.join();
}

}  // namespace latchkey
