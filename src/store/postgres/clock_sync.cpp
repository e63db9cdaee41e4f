#include "store/postgres/clock_sync.hpp"

#include "store/postgres/statements.hpp"

namespace latchkey::pg {

void ClockSync::start(Instant database, std::int64_t mark_ms) {
  database_.set(database);
  mark_ms_ = mark_ms;
  Clock& clock = test_clock_ ? *test_clock_ : static_cast<Clock&>(database_);
  // The mark is ahead of the times in use, so it only matters after the clock was set back.
  const bool was_set_back = to_ms(clock.now()) + kMarkAhead.count() < mark_ms;
  // All stores of a test share its clock, so none is ahead of another.
  const auto ahead = test_clock_ ? StoreClock::Ahead::full_speed : StoreClock::Ahead::slower;
  clock_.emplace(clock, was_set_back ? from_ms(mark_ms) : Instant{}, ahead);
}

void ClockSync::observe(Instant database, std::int64_t mark_ms) {
  database_.set(database);
  mark_ms_ = mark_ms;
  if (!test_clock_) clock_->catch_up(from_ms(mark_ms) - kMarkAhead);
}

void ClockSync::add_mark(Connection& connection, Instant now) {
  mark_ms_ = to_ms(now + kMarkAhead);
  connection.add({sql().mark_clock, Params().add(mark_ms_)});
}

}  // namespace latchkey::pg
