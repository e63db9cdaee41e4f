// DeadlineTracker: when the next lease or wait of any server ends, as far as this server knows.
//
// The database is asked for it while this server writes further deadlines. A Query collects what is written between
// the question and its answer, because the answer may not include it. next() from any thread, the rest on the store's.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <list>
#include <optional>

#include "base/time.hpp"
#include "pg/codec.hpp"

namespace latchkey::pg {

class DeadlineTracker {
 public:
  // Lives from the question to its answer.
  class Query {
   public:
    explicit Query(DeadlineTracker& tracker);
    ~Query();
    Query(const Query&) = delete;
    Query& operator=(const Query&) = delete;
    // The first column of the only row: milliseconds, or NULL for no deadline.
    void finish(const Rows& rows);

   private:
    DeadlineTracker& tracker_;
    const std::list<std::int64_t>::iterator earliest_written_;
  };

  void set(Instant next) { next_ms_ = to_ms(next); }
  // This server has written a deadline.
  void add(Instant written);
  std::optional<Instant> next() const;

 private:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  std::atomic<std::int64_t> next_ms_{kNever};
  std::list<std::int64_t> queries_;  // of each open query: the earliest deadline written since it was asked
};

}  // namespace latchkey::pg
