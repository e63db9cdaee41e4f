// ClockSync: the store's time on PostgreSQL. It follows the database's clock and never runs backwards.
//
// Servers share a mark in the database: no server has used a time beyond it. A server whose time is ahead of the
// database's makes the others follow, because otherwise it would end their leases too early.
// now() from any thread, the rest on the store's thread.
#pragma once

#include <cstdint>
#include <optional>

#include "pg/connection.hpp"
#include "store/postgres/database_clock.hpp"
#include "store/store_clock.hpp"

namespace latchkey::pg {

class ClockSync {
 public:
  static constexpr Duration kMarkAhead = std::chrono::seconds{1};

  // `test_clock` replaces the database's clock; null outside tests.
  ClockSync(Clock& host, Clock* test_clock) : database_(host), test_clock_(test_clock) {}

  // The values read when the store was opened. now() may be called from here on.
  void start(Instant database, std::int64_t mark_ms);
  Instant now() { return clock_->now(); }
  // The values read later.
  void observe(Instant database, std::int64_t mark_ms);
  // True if a transaction that uses `now` must raise the mark.
  bool must_raise_mark(Instant now) const { return to_ms(now) >= mark_ms_; }
  // True if `now` is so far ahead of the database that other servers cannot read it there.
  bool is_ahead_of(Instant database, Instant now) const {
    return !test_clock_ && now > database + kMarkAhead && must_raise_mark(now);
  }
  void add_mark(Connection& connection, Instant now);

 private:
  DatabaseClock database_;
  Clock* const test_clock_;
  std::optional<StoreClock> clock_;
  std::int64_t mark_ms_ = 0;
};

}  // namespace latchkey::pg
