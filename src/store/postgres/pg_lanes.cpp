// The lanes: connections that each take what waits, and carry it through one transaction.
#include <spdlog/spdlog.h>

#include <algorithm>

#include "store/postgres/pg_store.hpp"

namespace latchkey {

using namespace pg;

// Whether one batch has room for all that waits, and it is not worth a lane of its own.
bool PostgresStore::are_few_waiting() const {
  std::size_t requests = 0, commands = 0, bytes = 0;
  for (const auto& command : waiting_) {
    requests += command->requests;
    bytes += command->bytes;
    if (requests >= settings_.many || ++commands >= settings_.batch || bytes >= kBatchBytes) return false;
  }
  return requests > 0;
}

PostgresStore::Batch PostgresStore::take_waiting() {
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
      const bool waits_for_more = !closing_ && under_way_.are_soon_back(host_.elapsed()) && are_few_waiting();
      if (!waits_for_more) {
        batch = take_waiting();
        if (!batch.empty() || closing_) co_return batch;
      } else if (!std::exchange(looks_again_, true)) {
        // Those that are under way may not come back as soon.
        look_again_.set(kLookAgain, [this] {
          looks_again_ = false;
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
    const auto lane = under_way_.set_out(requests, host_.elapsed());
    co_await apply_batch(connection, std::move(batch));
    under_way_.come_back(lane);
  }
  lanes_left_ -= 1;
  refuse_.ring();
  slow_wake_.ring();
  news_.ring();
  tick_.ring();
}

// What somebody else's open transaction holds up: asked for again and again, apart from all that it does not hold up.
Task<void> PostgresStore::work_slowly() {
  std::unique_ptr<Connection> connection;
  while (!slow_.empty() || lanes_left_ > 0) {
    if (slow_.empty() && held_.empty() && held_letters_.empty()) {
      co_await slow_wake_.wait();
      continue;
    }
    co_await host_.wait(kSlowPause);
    co_await look_at_held(connection);
    Batch batch = pick_slow();
    if (!batch.empty()) co_await apply_batch(connection, std::move(batch), Pace::slow);
  }
  works_slowly_ = false;
  news_.ring();
}

// Those that may be tried again: one of each tenant, then another of each. Who has waited for too long is refused.
PostgresStore::Batch PostgresStore::pick_slow() {
  const bool closing = is_closing();
  const Duration now = host_.elapsed();
  std::map<std::string, std::deque<std::unique_ptr<PgCommand>>> ready;
  for (Slow& one : std::exchange(slow_, {})) {
    if (closing || now - one.since > settings_.patience) {
      const Error held = refuse_held();
      one.command->finish(&held);
      continue;
    }
    one.command->held_since = one.since;
    const bool waits = is_held(*one.command);
    waits ? put_aside(std::move(one.command)) : ready[one.command->tenant].push_back(std::move(one.command));
  }
  Batch batch;
  while (!ready.empty() && batch.size() < settings_.batch)
    for (auto of = ready.begin(); of != ready.end();) {
      batch.push_back(std::move(of->second.front()));
      of->second.pop_front();
      of = of->second.empty() ? ready.erase(of) : std::next(of);
    }
  for (auto& [tenant, rest] : ready)
    for (auto& command : rest) put_aside(std::move(command));
  return batch;
}

void PostgresStore::put_aside(std::unique_ptr<PgCommand> command) {
  const Duration since = command->held_since.value_or(host_.elapsed());
  slow_.push_back({std::move(command), since});
  slow_wake_.ring();
}

bool PostgresStore::is_closing() {
  const std::lock_guard lock(mutex_);
  return closing_;
}

// While the database cannot be reached all lanes may be busy with what they have, for as long as commits are unknown.
// What waits behind that is refused by its own time.
Task<void> PostgresStore::refuse_waiting() {
  Limit timer(context_.get_executor());
  while (lanes_left_ > 0) {
    timer.set(kRefuseEvery, [this] { refuse_.ring(); });
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
