// The writers: each has a connection, takes a batch of waiting commands and applies it in one transaction. The
// contended writer does the same with parked commands.
#include <spdlog/spdlog.h>

#include <algorithm>

#include "store/postgres/pg_store.hpp"

namespace latchkey {

using namespace pg;

// Whether one batch has room for the whole backlog, and the backlog is small enough to be coalesced.
bool PostgresStore::is_small_backlog() const {
  std::size_t requests = 0, commands = 0, bytes = 0;
  for (const auto& command : backlog_) {
    requests += command->requests;
    bytes += command->bytes;
    if (requests >= settings_.coalesce_below || ++commands >= settings_.batch || bytes >= kBatchBytes) return false;
  }
  return requests > 0;
}

PostgresStore::Batch PostgresStore::take_backlog() {
  Batch batch;
  for (std::size_t bytes = 0; !backlog_.empty() && batch.size() < settings_.batch && bytes < kBatchBytes;) {
    bytes += backlog_.front()->bytes;
    batch.push_back(std::move(backlog_.front()));
    backlog_.pop_front();
  }
  return batch;
}

Task<PostgresStore::Batch> PostgresStore::next_batch() {
  Batch batch;
  while (true) {
    {
      const std::lock_guard lock(mutex_);
      const bool waits_for_more =
          !is_closed_ && coalescing_.should_wait_for_inflight(host_.elapsed()) && is_small_backlog();
      if (!waits_for_more) {
        batch = take_backlog();
        if (!batch.empty() || is_closed_) co_return batch;
      } else if (!std::exchange(coalesce_timer_set_, true)) {
        // The batches in flight may be slower than expected: check again soon.
        coalesce_timer_.set(kCoalesceRecheck, [this] {
          coalesce_timer_set_ = false;
          wake_.ring();
        });
      }
    }
    co_await wake_.wait();
  }
}

Task<void> PostgresStore::run_writer() {
  std::unique_ptr<Connection> connection;
  while (true) {
    Batch batch = co_await next_batch();
    if (batch.empty()) break;
    std::size_t requests = 0;
    for (const auto& command : batch) requests += command->requests;
    const auto in_flight = coalescing_.batch_started(requests, host_.elapsed());
    co_await apply_batch(connection, std::move(batch));
    coalescing_.batch_finished(in_flight);
  }
  writers_left_ -= 1;
  reject_wake_.ring();
  contended_wake_.ring();
  if (writers_left_ == 0) deadline_watch_.stop();
  if (writers_left_ == 0 && !runs_contended_writer_) notifier_.finish();
}

// Retries commands whose rows are locked by other transactions, so that no other command waits with them.
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

// Takes parked commands that may succeed now: one of each tenant, then another of each. Commands that were parked for
// too long are rejected.
PostgresStore::Batch PostgresStore::next_contended_batch() {
  const bool closed = is_closed();
  const Duration now = host_.elapsed();
  std::map<std::string, std::deque<std::unique_ptr<PgCommand>>> ready;
  for (ParkedCommand& parked : std::exchange(parked_, {})) {
    if (closed || now - parked.since > settings_.patience) {
      const Error error = lock_contended_error();
      parked.command->finish(&error);
      continue;
    }
    parked.command->contended_since = parked.since;
    if (needs_contended_key(*parked.command)) {
      park(std::move(parked.command));
    } else {
      ready[parked.command->tenant].push_back(std::move(parked.command));
    }
  }
  Batch batch;
  while (!ready.empty() && batch.size() < settings_.batch)
    for (auto of = ready.begin(); of != ready.end();) {
      batch.push_back(std::move(of->second.front()));
      of->second.pop_front();
      of = of->second.empty() ? ready.erase(of) : std::next(of);
    }
  for (auto& [tenant, commands] : ready)
    for (auto& command : commands) park(std::move(command));
  return batch;
}

void PostgresStore::park(std::unique_ptr<PgCommand> command) {
  const Duration since = command->contended_since.value_or(host_.elapsed());
  parked_.push_back({std::move(command), since});
  contended_wake_.ring();
}

bool PostgresStore::is_closed() {
  const std::lock_guard lock(mutex_);
  return is_closed_;
}

// During an outage every writer may be busy with a batch whose commit is unknown, for up to half an hour. The commands
// behind them are rejected here, each after its own time.
Task<void> PostgresStore::reject_during_outage() {
  Limit timer(context_.get_executor());
  while (writers_left_ > 0) {
    timer.set(kRejectEvery, [this] { reject_wake_.ring(); });
    co_await reject_wake_.wait();
    if (!outage_since_) continue;
    Batch expired;
    {
      const std::lock_guard lock(mutex_);
      const Duration now = host_.elapsed();
      while (!backlog_.empty() && now - std::max(*outage_since_, backlog_.front()->submitted) >= settings_.patience) {
        expired.push_back(std::move(backlog_.front()));
        backlog_.pop_front();
      }
    }
    if (expired.empty()) continue;
    spdlog::error("postgres: {} commands rejected: database unreachable", expired.size());
    const Error error{Code::STORE_UNAVAILABLE, "the database cannot be reached; nothing was changed"};
    set_failure(error);
    for (const auto& command : expired) command->finish(&error);
  }
}

}  // namespace latchkey
