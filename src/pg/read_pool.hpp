// ReadPool: a few blocking connections for reads, and for the rare writes at start-up. A connection that was lost is
// opened again by the next caller.
//
// Every statement is a transaction of its own. The settings statement that the owner provides runs first in it: it sets
// the role that row-level security applies to, whatever role the URL connects as.
//
// No call blocks for longer than its limit: not for a free connection, not for a connect, not for a reply. A connection
// whose reply did not arrive in time is closed. Any thread.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "pg/codec.hpp"
#include "pg/shutdown_deadline.hpp"

namespace latchkey::pg {

class ReadPool {
 public:
  // The statement that begins every transaction: role, tenant (none: all tenants) and statement_timeout.
  using SettingsFor = std::function<Statement(const std::optional<std::string>& tenant, Duration limit)>;

  ReadPool(std::string url, std::size_t size_max, Clock& clock, Duration limit, SettingsFor settings_for)
      : url_(std::move(url)),
        size_max_(size_max),
        clock_(clock),
        limit_(limit),
        settings_for_(std::move(settings_for)) {}

  // Throws Failure. After a lost connection the statement is sent once more, so it must be repeatable.
  Rows run(const std::optional<std::string>& tenant, const Statement& statement) {
    return run(tenant, statement, next_limit());
  }
  // `until`: in the time of the clock's elapsed().
  Rows run(const std::optional<std::string>& tenant, const Statement& statement, Duration until);
  // A repeatable write for no tenant. It also works where default_transaction_read_only is on.
  void write(const Statement& statement);
  // The end of a call that begins now.
  Duration next_limit() { return clock_.elapsed() + limit_; }
  // Shutdown: waits that are under way, and those that begin later, end as ShutdownDeadline says.
  void end_within(Duration span);

 private:
  using Handle = std::unique_ptr<PGconn, decltype(&PQfinish)>;

  Handle borrow(Duration until);
  // A null handle is one that was closed.
  void give_back(Handle handle);
  void close_idle();
  Handle connect(Duration until);
  Rows run_with_retry(const std::vector<Statement>& statements, Duration until);
  Rows run_once(const std::vector<Statement>& statements, Duration until);

  const std::string url_;
  const std::size_t size_max_;
  Clock& clock_;
  const Duration limit_;
  const SettingsFor settings_for_;
  ShutdownDeadline shutdown_;
  std::mutex mutex_;
  std::condition_variable returned_;
  std::vector<Handle> idle_;
  std::size_t lent_ = 0;
};

// One read that consists of several statements: together they have the time limit of one.
class ReadTransaction {
 public:
  explicit ReadTransaction(ReadPool& pool) : pool_(pool), until_(pool.next_limit()) {}
  Rows run(const std::optional<std::string>& tenant, const Statement& statement) {
    return pool_.run(tenant, statement, until_);
  }

 private:
  ReadPool& pool_;
  const Duration until_;
};

}  // namespace latchkey::pg
