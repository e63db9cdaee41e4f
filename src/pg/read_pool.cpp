#include "pg/read_pool.hpp"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "pg/dsn.hpp"
#include "pg/session_settings.hpp"

namespace latchkey::pg {
namespace {

// One request and its reply on a connection, within a time limit. libpq has such a limit for PQconnectdb alone.
class PgExchange {
 public:
  PgExchange(PGconn* handle, Clock& clock, const ShutdownDeadline& shutdown, Duration until)
      : handle_(handle), clock_(clock), shutdown_(shutdown), until_(until) {}

  [[noreturn]] void raise() { throw Failure("", PQerrorMessage(handle_), true); }

  // A socket with an error is ready too: the next libpq call reports the error.
  void wait(short what) {
    const Duration since = clock_.elapsed();
    while (true) {
      const nfds_t count = shutdown_.is_set() ? 1 : 2;  // once set, its descriptor stays readable
      const Duration left = shutdown_.cap(until_, since) - clock_.elapsed();
      if (left <= Duration{0}) throw Failure("", "no reply within the time limit", true);
      std::array<pollfd, 2> both{{{PQsocket(handle_), what, 0}, {shutdown_.descriptor(), POLLIN, 0}}};
      const int ready = ::poll(both.data(), count, static_cast<int>(std::min<std::int64_t>(left.count(), 60'000)));
      if (ready > 0 && both[0].revents != 0) return;
      if (ready < 0 && errno != EINTR) throw Failure("", "poll() failed on the connection", true);
    }
  }

  void connect() {
    for (PostgresPollingStatusType poll = PGRES_POLLING_WRITING; poll != PGRES_POLLING_OK;) {
      if (poll == PGRES_POLLING_FAILED || PQstatus(handle_) == CONNECTION_BAD) raise();
      wait(poll == PGRES_POLLING_READING ? POLLIN : POLLOUT);
      poll = PQconnectPoll(handle_);
    }
    if (PQsetnonblocking(handle_, 1) != 0 || PQenterPipelineMode(handle_) != 1) raise();
  }

  void add(const Statement& statement) {
    const auto types = statement.params.types();
    const auto values = statement.params.values();
    const auto lengths = statement.params.lengths();
    const std::vector<int> formats(types.size(), 1);
    if (PQsendQueryParams(handle_, statement.sql.c_str(), static_cast<int>(types.size()), types.data(), values.data(),
                          lengths.data(), formats.data(), 1) != 1)
      raise();
  }

  // The server may reply before it has read everything. Reading meanwhile prevents a deadlock of two full buffers.
  void send_all() {
    if (PQpipelineSync(handle_) != 1) raise();
    for (int left = PQflush(handle_); left != 0; left = PQflush(handle_)) {
      if (left < 0) raise();
      wait(POLLIN | POLLOUT);
      if (PQconsumeInput(handle_) != 1) raise();
    }
  }

  PGresult* next_result() {
    while (PQisBusy(handle_)) {
      wait(POLLIN);
      if (PQconsumeInput(handle_) != 1) raise();
    }
    return PQgetResult(handle_);
  }

 private:
  PGconn* const handle_;
  Clock& clock_;
  const ShutdownDeadline& shutdown_;
  const Duration until_;
};

}  // namespace

void ReadPool::end_within(Duration span) {
  {
    const std::lock_guard lock(mutex_);  // a thread about to wait must see the new deadline
    shutdown_.set(clock_.elapsed() + span);
  }
  returned_.notify_all();
}

ReadPool::Handle ReadPool::borrow(Duration until) {
  std::unique_lock lock(mutex_);
  const Duration since = clock_.elapsed();
  for (bool must_wait = lent_ >= size_max_; must_wait;) {
    const Duration left = shutdown_.cap(until, since) - clock_.elapsed();
    // Checked before a returned connection is taken: otherwise each waiting thread would get another grace period in
    // turn.
    if (left <= Duration{0}) {
      returned_.notify_one();  // another thread may have time left to use it
      throw Failure("", "read pool exhausted: every connection waits for a reply", false);
    }
    must_wait = lent_ >= size_max_;
    if (must_wait) returned_.wait_for(lock, left);
  }
  lent_ += 1;
  Handle handle{nullptr, &PQfinish};
  if (idle_.empty()) return handle;
  handle = std::move(idle_.back());
  idle_.pop_back();
  return handle;
}

void ReadPool::give_back(Handle handle) {
  {
    const std::lock_guard lock(mutex_);
    lent_ -= 1;
    if (handle && PQstatus(handle.get()) == CONNECTION_OK) idle_.push_back(std::move(handle));
  }
  returned_.notify_one();
}

void ReadPool::close_idle() {
  std::vector<Handle> closed;
  const std::lock_guard lock(mutex_);
  closed.swap(idle_);
}

// Tries the hosts in order; the first that accepts a connection is used.
ReadPool::Handle ReadPool::connect(Duration until) {
  const auto hosts = split_hosts(url_);
  for (std::size_t i = 0;; ++i) {
    Handle handle(PQconnectStart(hosts[i].conninfo.c_str()), &PQfinish);
    if (!handle) throw std::bad_alloc();
    try {
      PgExchange(handle.get(), clock_, shutdown_, std::min(until, clock_.elapsed() + hosts[i].connect_timeout))
          .connect();
      return handle;
    } catch (const Failure&) {
      if (i + 1 == hosts.size()) throw;
    }
  }
}

// The statements are one transaction, which ends with the pipeline sync or their own COMMIT. No setting survives it, so
// the next borrower starts clean.
Rows ReadPool::run_once(const std::vector<Statement>& statements, Duration until) {
  struct Borrowed {
    ReadPool& pool;
    Handle handle;
    ~Borrowed() { pool.give_back(std::move(handle)); }
  } borrowed{*this, borrow(until)};
  // A connection with an unfinished exchange must not be used again: it returns to the pool only at the end.
  Handle handle = std::exchange(borrowed.handle, Handle{nullptr, &PQfinish});
  if (!handle) handle = connect(until);
  PgExchange exchange(handle.get(), clock_, shutdown_, until);
  for (const Statement& statement : statements) exchange.add(statement);
  exchange.send_all();
  std::optional<Rows> rows;
  std::optional<Failure> failure;
  for (std::size_t i = 0; i <= statements.size(); ++i) {
    PGresult* result = exchange.next_result();
    if (!result) exchange.raise();
    if (PQresultStatus(result) == PGRES_PIPELINE_ABORTED) {
      PQclear(result);
    } else {
      try {
        Rows found = check(handle.get(), result);
        if (i + 1 == statements.size()) rows.emplace(std::move(found));
      } catch (const Failure& found) {
        if (found.lost) throw;
        if (!failure) failure.emplace(found);
      }
    }
    if (i < statements.size() && exchange.next_result() != nullptr) exchange.raise();  // the null that ends each result
  }
  // A connection that an error left inside a transaction is closed.
  if (PQtransactionStatus(handle.get()) == PQTRANS_IDLE) borrowed.handle = std::move(handle);
  if (failure) throw *failure;
  return std::move(*rows);
}

Rows ReadPool::run(const std::optional<std::string>& tenant, const Statement& statement, Duration until) {
  return run_with_retry({settings_for_(tenant, limit_), statement}, until);
}

void ReadPool::write(const Statement& statement) {
  run_with_retry({{"BEGIN READ WRITE", {}}, settings_for_(std::nullopt, limit_), statement, {"COMMIT", {}}},
                 next_limit());
}

Rows ReadPool::run_with_retry(const std::vector<Statement>& statements, Duration until) {
  const Duration begun = clock_.elapsed();
  try {
    return run_once(statements, until);
  } catch (const Failure& failure) {
    if (!failure.lost) throw;
    // A restarted server has closed all connections.
    close_idle();
    if (clock_.elapsed() >= shutdown_.cap(until, begun)) throw;
  }
  return run_once(statements, until);
}

}  // namespace latchkey::pg
