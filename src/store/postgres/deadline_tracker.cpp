#include "store/postgres/deadline_tracker.hpp"

#include <algorithm>

namespace latchkey::pg {

DeadlineTracker::Query::Query(DeadlineTracker& tracker)
    : tracker_(tracker), earliest_written_(tracker.queries_.insert(tracker.queries_.end(), kNever)) {}

DeadlineTracker::Query::~Query() { tracker_.queries_.erase(earliest_written_); }

void DeadlineTracker::Query::finish(const Rows& rows) {
  tracker_.next_ms_ = rows.is_null(0, 0) ? *earliest_written_ : std::min(rows.integer(0, 0), *earliest_written_);
}

void DeadlineTracker::add(Instant written) {
  next_ms_ = std::min<std::int64_t>(next_ms_, to_ms(written));
  for (std::int64_t& earliest : queries_) earliest = std::min(earliest, to_ms(written));
}

std::optional<Instant> DeadlineTracker::next() const {
  const std::int64_t ms = next_ms_;
  return ms == kNever ? std::nullopt : std::optional(from_ms(ms));
}

}  // namespace latchkey::pg
