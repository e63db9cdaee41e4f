// Connection: one connection to PostgreSQL, driven by coroutines of one io_context; it has no thread. Statements that
// are queued go out together, in libpq's pipeline mode: a batch costs one round trip, not one per statement.
//
// Statements are parsed anew each time until keep_plans(): behind a pooler in transaction mode the next one may be
// answered by a session that has never heard of this one's.
#pragma once

#include <boost/asio/posix/stream_descriptor.hpp>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/alarm.hpp"
#include "base/task.hpp"
#include "base/time.hpp"
#include "store/postgres/wire.hpp"

namespace latchkey::pg {

// Where connections of one io_context wait for their servers, so that all can be told to wait no longer. Not safe from
// other threads; outlives the connections.
class Waits {
 public:
  using Socket = boost::asio::posix::stream_descriptor;
  // Whether it is ready: not, when it was told so.
  Task<bool> wait(Socket& socket, Socket::wait_type what);
  // Those that wait now give up; their connections are lost.
  void give_up();
  // And so does everybody from now on.
  void end();
  bool has_ended() const { return has_ended_; }

 private:
  std::set<Socket*> waiting_;
  bool has_ended_ = false;
};

class Connection {
 public:
  // Throws Failure; also when it takes longer than that.
  static Task<std::unique_ptr<Connection>> connect(Waits& waits, std::string url, Duration limit);
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
  // Whether the session with that process is this connection's own: no pooler lends it.
  bool is_served_by(std::int64_t process) const { return PQbackendPID(handle_.get()) == process; }
  // From now on statements are parsed and planned once, and named by their text.
  void keep_plans() { keeps_plans_ = true; }
  bool does_keep_plans() const { return keeps_plans_; }
  bool is_lost() const { return lost_ || PQstatus(handle_.get()) == CONNECTION_BAD; }

 private:
  Connection(Waits& waits, PGconn* handle, boost::asio::any_io_executor executor);
  Task<void> wait(boost::asio::posix::stream_descriptor::wait_type what);
  Task<void> send_all();
  Task<PGresult*> next_result();
  [[noreturn]] void raise();
  Task<std::vector<Rows>> collect();
  Task<void> end_statement();
  bool take_result(PGresult* result, std::vector<Rows>& results, std::optional<Failure>& failure);
  // The name it is kept by; sends it first if it is new. None: it is not worth a name.
  const std::string* name_of(const Statement& statement, const std::vector<Oid>& types);

  Waits& waits_;
  std::unique_ptr<PGconn, decltype(&PQfinish)> handle_;
  boost::asio::posix::stream_descriptor socket_;
  // What is on its way: a statement's text where that is to be kept by a name, none where it is carried out.
  std::vector<std::optional<std::string>> added_;
  std::unordered_map<std::string, std::string> names_;
  bool keeps_plans_ = false;
  Limit limit_;
  bool is_over_ = false;  // the time of this run()
  bool lost_ = false;
  bool warned_ = false;
};

}  // namespace latchkey::pg
