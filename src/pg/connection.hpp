// Connection: one connection to PostgreSQL, driven by coroutines of one io_context; it has no thread of its own. Added
// statements are sent together in libpq's pipeline mode: a batch costs one round trip, not one per statement.
//
// Statements are parsed every time until enable_prepared_statements(): behind a pooler in transaction mode the next
// transaction may run in another session, which does not have the prepared statements.
#pragma once

#include <boost/asio/posix/stream_descriptor.hpp>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/alarm.hpp"
#include "base/task.hpp"
#include "base/time.hpp"
#include "pg/codec.hpp"
#include "pg/socket_waiters.hpp"

namespace latchkey::pg {

class Connection {
 public:
  // Throws Failure, also when connecting takes longer than `limit`.
  static Task<std::unique_ptr<Connection>> connect(SocketWaiters& waiters, std::string url, Duration limit);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void add(const Statement& statement);
  void add(std::string_view sql) { add(Statement{std::string(sql), {}}); }
  // Sends the added statements and returns their results in order. Throws the first Failure; the statements after it
  // were not executed. A reply that takes longer than `limit` counts as a lost connection.
  Task<std::vector<Rows>> run(Duration limit);
  // The server sent a WARNING during the last run(). At a commit it means: perhaps not replicated.
  bool has_warned() const { return warned_; }
  // True if the backend process belongs to this connection alone, so there is no pooler between.
  bool is_served_by(std::int64_t process) const { return PQbackendPID(handle_.get()) == process; }
  // From now on statements are parsed and planned once, and named by a hash of their text.
  void enable_prepared_statements() { uses_prepared_statements_ = true; }
  bool uses_prepared_statements() const { return uses_prepared_statements_; }
  bool is_lost() const { return lost_ || PQstatus(handle_.get()) == CONNECTION_BAD; }

 private:
  Connection(SocketWaiters& waiters, PGconn* handle, boost::asio::any_io_executor executor);
  Task<void> wait(boost::asio::posix::stream_descriptor::wait_type what);
  Task<void> send_all();
  Task<PGresult*> next_result();
  // With libpq's error message, or the given one.
  [[noreturn]] void raise();
  [[noreturn]] void raise(const std::string& message);
  Task<std::vector<Rows>> collect();
  Task<void> end_statement();
  bool take_result(PGresult* result, std::vector<Rows>& results, std::optional<Failure>& failure);
  // The prepared statement's name; prepares it first if it is new. Null: too short or too rare to prepare.
  const std::string* name_of(const Statement& statement, const std::vector<Oid>& types);

  SocketWaiters& waiters_;
  std::unique_ptr<PGconn, decltype(&PQfinish)> handle_;
  boost::asio::posix::stream_descriptor socket_;
  // The messages in flight: the statement's text for a Parse that adds a name, none for an execution.
  std::vector<std::optional<std::string>> added_;
  std::unordered_map<std::string, std::string> names_;
  bool uses_prepared_statements_ = false;
  Limit limit_;
  Duration allowed_{};    // limit of this run()
  bool is_over_ = false;  // the limit of this run() has passed
  bool lost_ = false;
  bool warned_ = false;
};

}  // namespace latchkey::pg
