// Connection: one connection to PostgreSQL, driven by coroutines of one io_context; it has no thread. Statements that
// are queued go out together, in libpq's pipeline mode: a batch costs one round trip, not one per statement.
//
// Statements are parsed anew each time until enable_prepared_statements(): behind a pooler in transaction mode the next
// one may be answered by a session that has never heard of this one's.
#pragma once

#include <boost/asio/posix/stream_descriptor.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/alarm.hpp"
#include "base/task.hpp"
#include "base/time.hpp"
#include "store/postgres/wire.hpp"

namespace latchkey::pg {

// Where connections of one io_context wait for their servers, so that those who hear nothing can be told to wait no
// longer. Not safe from other threads; outlives the connections.
//
// It counts moments, not the time since anybody decided to stop: a server that answers is waited for as ever.
class SocketWaiters {
 public:
  using Socket = boost::asio::posix::stream_descriptor;
  static constexpr Duration kMoment = std::chrono::milliseconds{100};
  static constexpr unsigned kSilence = 10;  // moments without a word: a second
  // endless: as each one's own limit says.
  // some:    who has heard nothing for kSilence gives up; the connection is lost.
  // last:    the same; and when nobody has heard anything for twice as long, nobody waits any more.
  enum class Patience : std::uint8_t { endless, some, last };

  // Whether it is ready: not, when it gave up.
  Task<bool> wait(Socket& socket, Socket::wait_type what);
  // A moment has passed: to be told from when on it matters. From one patience to the next only.
  void on_tick(Patience patience);
  bool are_last() const { return are_last_; }
  bool has_ended() const { return has_ended_; }

 private:
  std::map<Socket*, unsigned> waiting_;  // for how many moments
  unsigned unheard_ = 0;                 // moments in which somebody waited, since anybody heard something
  bool are_last_ = false;
  bool has_ended_ = false;
};

class Connection {
 public:
  // Throws Failure; also when it takes longer than that.
  static Task<std::unique_ptr<Connection>> connect(SocketWaiters& waits, std::string url, Duration limit);
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
  void enable_prepared_statements() { uses_prepared_statements_ = true; }
  bool uses_prepared_statements() const { return uses_prepared_statements_; }
  bool is_lost() const { return lost_ || PQstatus(handle_.get()) == CONNECTION_BAD; }

 private:
  Connection(SocketWaiters& waits, PGconn* handle, boost::asio::any_io_executor executor);
  Task<void> wait(boost::asio::posix::stream_descriptor::wait_type what);
  Task<void> send_all();
  Task<PGresult*> next_result();
  // With what libpq says.
  [[noreturn]] void raise();
  [[noreturn]] void raise(const std::string& why);
  Task<std::vector<Rows>> collect();
  Task<void> end_statement();
  bool take_result(PGresult* result, std::vector<Rows>& results, std::optional<Failure>& failure);
  // The name it is kept by; sends it first if it is new. None: it is not worth a name.
  const std::string* name_of(const Statement& statement, const std::vector<Oid>& types);

  SocketWaiters& waits_;
  std::unique_ptr<PGconn, decltype(&PQfinish)> handle_;
  boost::asio::posix::stream_descriptor socket_;
  // What is on its way: a statement's text where that is to be kept by a name, none where it is carried out.
  std::vector<std::optional<std::string>> added_;
  std::unordered_map<std::string, std::string> names_;
  bool uses_prepared_statements_ = false;
  Limit limit_;
  Duration allowed_{};    // for this run()
  bool is_over_ = false;  // the time of this run()
  bool lost_ = false;
  bool warned_ = false;
};

}  // namespace latchkey::pg
