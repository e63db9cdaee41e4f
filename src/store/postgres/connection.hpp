// Connection: one connection to PostgreSQL, driven by coroutines of one io_context; it has no thread. Statements that
// are queued go out together, in libpq's pipeline mode: a batch costs one round trip, not one per statement.
//
// Statements are parsed anew each time: named ones do not survive a pooler in transaction mode, and plans made on empty
// tables would stay.
#pragma once

#include <boost/asio/posix/stream_descriptor.hpp>
#include <memory>

#include "base/alarm.hpp"
#include "base/task.hpp"
#include "base/time.hpp"
#include "store/postgres/wire.hpp"

namespace latchkey::pg {

class Connection {
 public:
  // Throws Failure; also when it takes longer than that.
  static Task<std::unique_ptr<Connection>> connect(std::string url, Duration limit);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void add(const Statement& statement);
  void add(std::string_view sql) { add(Statement{std::string(sql), {}}); }
  // Sends what was added and gives the results in order. Throws the first Failure; what followed it was not executed.
  // Longer than `limit` is as bad as a lost connection.
  Task<std::vector<Rows>> run(Duration limit);
  // The server warned during the last run(): at a commit, that it may not be replicated.
  bool has_warned() const { return warned_; }
  bool is_lost() const { return lost_ || PQstatus(handle_.get()) == CONNECTION_BAD; }

 private:
  Connection(PGconn* handle, boost::asio::any_io_executor executor);
  Task<void> wait(boost::asio::posix::stream_descriptor::wait_type what);
  Task<void> send_all();
  Task<PGresult*> next_result();
  [[noreturn]] void raise();
  Task<std::vector<Rows>> collect();

  std::unique_ptr<PGconn, decltype(&PQfinish)> handle_;
  boost::asio::posix::stream_descriptor socket_;
  std::size_t added_ = 0;
  Limit limit_;
  bool lost_ = false;
  bool warned_ = false;
};

}  // namespace latchkey::pg
