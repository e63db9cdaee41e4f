#include "store/postgres/deadline_watch.hpp"

#include "store/postgres/statements.hpp"

namespace latchkey::pg {

Task<void> DeadlineWatch::run() {
  while (!is_stopped_) {
    timer_.set(kEvery, [this] { wake_.ring(); });
    co_await wake_.wait();
    if (is_stopped_) break;
    try {
      co_await poll();
    } catch (const Failure&) {
      connection_.reset();
    }
  }
  timer_.stop();
}

void DeadlineWatch::stop() {
  is_stopped_ = true;
  wake_.ring();
}

Task<void> DeadlineWatch::poll() {
  DeadlineTracker::Query query(deadlines_);
  if (!connection_ || connection_->is_lost()) connection_ = co_await connector_.open();
  connection_->add(sql().set_role_engine);
  connection_->add(sql().server_identity);
  connection_->add(sql().read_clock);
  connection_->add(sql().next_deadline);
  const auto results = co_await connection_->run(reply_max_);
  // The reply is older than the check that follows here, so the deadline in it is not used.
  if (!identity_.is(results[results.size() - 3].bytes(0, 0)))
    co_return co_await identity_.check(*connection_, reply_max_);
  const Rows& clock = results[results.size() - 2];
  const Instant database = from_ms(clock.integer(0, 0));
  clock_.observe(database, clock.integer(0, 1));
  if (const Instant now = clock_.now(); clock_.is_ahead_of(database, now)) {
    connection_->add(sql().set_role_engine);
    clock_.add_mark(*connection_, now);
  }
  query.finish(results.back());
  co_await announce_server();
}

Task<void> DeadlineWatch::announce_server() {
  connection_->add(sql().set_role_engine);
  connection_->add(sql().set_lock_timeout_500ms);
  connection_->add(sql().announce_server);
  try {
    co_await connection_->run(reply_max_);
  } catch (const Failure& found) {
    if (found.lost) throw;
  }
}

}  // namespace latchkey::pg
