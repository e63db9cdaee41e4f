// The lanes: connections that each take what waits, and execute_once it through one transaction.
#include <spdlog/spdlog.h>

#include <algorithm>

#include "store/postgres/pg_store.hpp"

namespace latchkey {

using namespace pg;

// Whether one batch has room for all that waits, and it is not worth a lane of its own.
bool PostgresStore::is_small_backlog() const {
  std::size_t requests = 0, commands = 0, bytes = 0;
  for (const auto& command : waiting_) {
    requests += command->requests;
    bytes += command->bytes;
    if (requests >= settings_.coalesce_below || ++commands >= settings_.batch || bytes >= kBatchBytes) return false;
  }
  return requests > 0;
}

PostgresStore::Batch PostgresStore::take_backlog() {
  Batch batch;
  for (std::size_t bytes = 0; !waiting_.empty() && batch.size() < settings_.batch && bytes < kBatchBytes;) {
    bytes += waiting_.front()->bytes;
    batch.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
  return batch;
}

Task<PostgresStore::Batch> PostgresStore::next_batch() {
  Batch batch;
  while (true) {
    {
      const std::lock_guard lock(mutex_);
      const bool waits_for_more =
          !closing_ && coalescing_.should_wait_for_inflight(host_.elapsed()) && is_small_backlog();
      if (!waits_for_more) {
        batch = take_backlog();
        if (!batch.empty() || closing_) co_return batch;
      } else if (!std::exchange(coalesce_timer_set_, true)) {
        // Those that are under way may not come back as soon.
        coalesce_timer_.set(kCoalesceRecheck, [this] {
          coalesce_timer_set_ = false;
          wake_.ring();
        });
      }
    }
    co_await wake_.wait();
  }
}

Task<void> PostgresStore::work() {
  std::unique_ptr<Connection> connection;
  while (true) {
    Batch batch = co_await next_batch();
    if (batch.empty()) break;
    std::size_t requests = 0;
    for (const auto& command : batch) requests += command->requests;
    const auto lane = coalescing_.batch_started(requests, host_.elapsed());
    co_await apply_batch(connection, std::move(batch));
    coalescing_.batch_finished(lane);
  }
  writers_left_ -= 1;
  refuse_.ring();
  contended_wake_.ring();
  if (writers_left_ == 0) deadline_watch_.stop();
  if (writers_left_ == 0 && !runs_contended_writer_) notifier_.finish();
}

// What somebody else's open transaction holds up: asked for again and again, apart from all that it does not hold up.
Task<void> PostgresStore::run_contended_writer() {
  std::unique_ptr<Connection> connection;
  while (!parked_.empty() || writers_left_ > 0) {
    if (parked_.empty() && contended_keys_.empty() && contended_dead_letters_.empty()) {
      co_await contended_wake_.wait();
      continue;
    }
    co_await host_.wait(kContendedPause);
    co_await probe_contended(connection);
    Batch batch = next_contended_batch();
    if (!batch.empty()) co_await apply_batch(connection, std::move(batch), WriterKind::contended);
  }
  runs_contended_writer_ = false;
  notifier_.finish();
}

// Those that may be tried again: one of each tenant, then another of each. Who has waited for too long is refused.
PostgresStore::Batch PostgresStore::next_contended_batch() {
  const bool closing = is_closing();
  const Duration now = host_.elapsed();
  std::map<std::string, std::deque<std::unique_ptr<PgCommand>>> ready;
  for (ParkedCommand& one : std::exchange(parked_, {})) {
    if (closing || now - one.since > settings_.patience) {
      const Error held = lock_contended_error();
      one.command->finish(&held);
      continue;
    }
    one.command->held_since = one.since;
    const bool waits = is_held(*one.command);
    waits ? park(std::move(one.command)) : ready[one.command->tenant].push_back(std::move(one.command));
  }
  Batch batch;
  while (!ready.empty() && batch.size() < settings_.batch)
    for (auto of = ready.begin(); of != ready.end();) {
      batch.push_back(std::move(of->second.front()));
      of->second.pop_front();
      of = of->second.empty() ? ready.erase(of) : std::next(of);
    }
  for (auto& [tenant, rest] : ready)
    for (auto& command : rest) park(std::move(command));
  return batch;
}

void PostgresStore::park(std::unique_ptr<PgCommand> command) {
  const Duration since = command->held_since.value_or(host_.elapsed());
  parked_.push_back({std::move(command), since});
  contended_wake_.ring();
}

bool PostgresStore::is_closing() {
  const std::lock_guard lock(mutex_);
  return closing_;
}

// While the database cannot be reached all lanes may be busy with what they have, for as long as commits are unknown.
// What waits behind that is refused by its own time.
Task<void> PostgresStore::reject_waiting() {
  Limit timer(context_.get_executor());
  while (writers_left_ > 0) {
    timer.set(kRejectEvery, [this] { refuse_.ring(); });
    co_await refuse_.wait();
    if (!outage_since_) continue;
    Batch late;
    {
      const std::lock_guard lock(mutex_);
      const Duration now = host_.elapsed();
      while (!waiting_.empty() && now - std::max(*outage_since_, waiting_.front()->submitted) >= settings_.patience) {
        late.push_back(std::move(waiting_.front()));
        waiting_.pop_front();
      }
    }
    if (late.empty()) continue;
    spdlog::error("postgres: {} were refused: the database cannot be reached", late.size());
    const Error error{Code::STORE_UNAVAILABLE, "the database cannot be reached; nothing was changed"};
    tell_failure(error);
    for (const auto& command : late) command->finish(&error);
  }
}

}  // namespace latchkey
