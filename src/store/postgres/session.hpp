// Sessions: a few connections for reads, and for what is written once at the start, which block their caller. Each
// opens itself again after a loss.
//
// Every statement is a transaction of its own and runs in a role that row-level security holds for, whoever the URL
// connects as: a tenant's reads as that tenant, what looks over tenants as the engine.
//
// Nothing here waits for longer than the limit: for a connection, for the server to take one, for its answer. One that
// did not answer in time is dropped.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>

#include "base/clock.hpp"
#include "store/postgres/wire.hpp"

namespace latchkey::pg {

// A time by which all waiting ends, once it is set: but whoever begins to wait about then, or later, has a moment for
// it, as a server that answers is asked as ever. Whoever waits for a descriptor waits for this one too, and looks again
// when it is ready.
class ShutdownDeadline {
 public:
  static constexpr Duration kMoment = std::chrono::seconds{1};
  ShutdownDeadline();
  ~ShutdownDeadline();
  ShutdownDeadline(const ShutdownDeadline&) = delete;
  ShutdownDeadline& operator=(const ShutdownDeadline&) = delete;
  // By a clock's elapsed(). The first time counts.
  void set(Duration until);
  bool is_set() const { return until_.load() != Duration::max(); }
  // For who waits since then.
  Duration cap(Duration until, Duration since) const {
    return std::min(until, std::max(until_.load(), since + kMoment));
  }
  int descriptor() const { return descriptor_; }

 private:
  std::atomic<Duration> until_{Duration::max()};
  int descriptor_;
};

class Sessions {
 public:
  Sessions(std::string url, std::size_t most, Clock& clock, Duration limit)
      : url_(std::move(url)), most_(most), clock_(clock), limit_(limit) {}
  // Throws Failure. A lost connection is tried once more: only for statements that may be repeated. Without a tenant:
  // as the engine.
  Rows run(const std::optional<std::string>& tenant, const Statement& statement) {
    return run(tenant, statement, next_limit());
  }
  // Until then, by the clock's elapsed().
  Rows run(const std::optional<std::string>& tenant, const Statement& statement, Duration until);
  // One that writes and may be repeated, as the engine: also where sessions are read-only until somebody says
  // otherwise.
  void write(const Statement& statement);
  // What begins now must end then.
  Duration next_limit() { return clock_.elapsed() + limit_; }
  // From then on nothing waits for longer than a moment, whether it waits already or is asked for later.
  void end_within(Duration span);

 private:
  using Handle = std::unique_ptr<PGconn, decltype(&PQfinish)>;

  Handle borrow(Duration until);
  // A null one was lost.
  void give_back(Handle handle);
  void forget_idle();
  Handle connect(Duration until);
  Statement settings_for(const std::optional<std::string>& tenant) const;
  // A lost connection is tried once more.
  Rows run_twice(const std::vector<Statement>& statements, Duration until);
  Rows run_once(const std::vector<Statement>& statements, Duration until);

  const std::string url_;
  const std::size_t most_;
  Clock& clock_;
  const Duration limit_;
  ShutdownDeadline last_call_;
  std::mutex mutex_;
  std::condition_variable returned_;
  std::vector<Handle> idle_;
  std::size_t lent_ = 0;
};

// One read, of any number of statements: all of them together have the time of one.
class ReadTransaction {
 public:
  explicit ReadTransaction(Sessions& sessions) : sessions_(sessions), until_(sessions.next_limit()) {}
  Rows run(const std::optional<std::string>& tenant, const Statement& statement) {
    return sessions_.run(tenant, statement, until_);
  }

 private:
  Sessions& sessions_;
  const Duration until_;
};

}  // namespace latchkey::pg
