// Loop: one thread of the server with its own io_context, listener, connections, deadlines and reply queue.
//
// A connection belongs to one loop and shares no state with others. The thread that owns the server constructs and
// destroys the loop; the loop's own thread calls run(). Other threads may call begin_stop() and use the reply queue.
#pragma once

#include <atomic>
#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "http/cors.hpp"
#include "http/deadlines.hpp"
#include "http/reply_queue.hpp"
#include "http/settings.hpp"

namespace latchkey::http {

// The executor is a concrete type, so operations do not pay for type erasure.
using Tcp = asio::ip::tcp;
using Socket = asio::basic_stream_socket<Tcp, asio::io_context::executor_type>;
using Acceptor = asio::basic_socket_acceptor<Tcp, asio::io_context::executor_type>;

class Connection;

// State that all loops of a server share.
struct Shared {
  Shared(Settings the_settings, Handler the_handler, Clock& the_clock)
      : settings(std::move(the_settings)), handler(std::move(the_handler)), clock(the_clock), cors(settings.cors) {}

  const Settings settings;
  const Handler handler;
  Clock& clock;
  const Cors cors;
  std::atomic<std::size_t> connections{0};
  std::atomic<std::size_t> in_flight{0};
};

class Loop final : private ReplyQueue::Owner {
 public:
  explicit Loop(Shared& shared);
  ~Loop() override;

  // Opens the listener of this loop. Fails with LISTEN_FAILED when the address cannot be bound.
  Result<Tcp::endpoint> listen(const Tcp::endpoint& at);
  // Serves until the loop is stopped and its last connection is closed, or the stop deadline has passed.
  void run();
  // Stops accepting, closes idle connections and finishes the others. Any thread.
  void begin_stop();

  // For connections, on the loop's thread.
  Shared& shared() { return shared_; }
  Deadlines& deadlines() { return deadlines_; }
  const std::shared_ptr<ReplyQueue>& reply_queue() const { return reply_queue_; }
  const std::string& date() const { return date_; }
  bool is_stopping() const { return is_stopping_; }
  void enter_handler(Connection& connection) { handling_ = &connection; }
  void leave_handler() { handling_ = nullptr; }
  // Marks the slot as free. The connection must be closed, without a pending operation.
  void retire(Connection& connection);

 private:
  void wake() override;
  bool deliver_inline(ReplyQueue::Entry& entry) override;

  void accept();
  void admit(Socket socket);
  Connection& vacant_connection();
  void drain();
  void answer(ReplyQueue::Entry& entry);
  Task<void> run_ticks();
  void on_tick();
  void stop_accepting();
  void stop_if_empty();

  Shared& shared_;
  asio::io_context io_;
  Acceptor acceptor_;
  Deadlines deadlines_;
  std::shared_ptr<ReplyQueue> reply_queue_;
  std::vector<std::unique_ptr<Connection>> connections_;  // by slot
  std::vector<std::uint32_t> vacant_slots_;
  std::vector<ReplyQueue::Entry> entries_;
  std::vector<std::shared_ptr<StreamBuffer>> streams_;
  std::string date_;
  Instant date_second_{};
  Connection* handling_ = nullptr;  // the connection whose handler is on the stack
  Duration stop_by_{0};
  bool is_stopping_ = false;
  bool is_accepting_ = false;
  bool accept_failed_ = false;  // for example, no free descriptor; the next tick retries
};

}  // namespace latchkey::http
