#include "api/waiters.hpp"

#include <algorithm>

namespace latchkey::api {

Waiters::Waiters(RunReader& store, Clock& clock, Duration look_again)
    : store_(store), clock_(clock), look_again_(look_again), thread_([this] { run(); }) {}

void Waiters::add(std::optional<std::string> tenant, RunId id, Duration span, Wake wake) {
  {
    std::unique_lock lock(mutex_);
    if (closed_) {
      lock.unlock();
      return wake(store_.find(tenant, id));
    }
    // Looked at once at the start: it may have settled since the caller looked.
    waiters_.push_back({std::move(tenant), id, clock_.elapsed() + span, std::move(wake), true});
    count_.store(waiters_.size(), std::memory_order_relaxed);
    is_notified_ = true;
  }
  changed_.notify_one();
}

void Waiters::notify(const RunId& id) {
  if (count_.load(std::memory_order_relaxed) == 0) return;
  {
    const std::lock_guard lock(mutex_);
    bool any = false;
    for (auto* waiters : {&waiters_, &looking_})
      for (Waiter& waiter : *waiters)
        if (waiter.id == id) any = waiter.is_notified = true;
    if (!any) return;
    is_notified_ = true;
  }
  changed_.notify_one();
}

void Waiters::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

std::vector<Waiters::Waiter> Waiters::take_due(Duration now, bool all) {
  const auto rest = std::partition(waiters_.begin(), waiters_.end(), [&](const Waiter& waiter) {
    return !all && !waiter.is_notified && now < waiter.until;
  });
  std::vector<Waiter> due(std::move_iterator(rest), std::move_iterator(waiters_.end()));
  waiters_.erase(rest, waiters_.end());
  return due;
}

void Waiters::look(Duration now, bool last) {
  std::vector<bool> over;
  std::optional<Error> failure;
  for (Waiter& waiter : looking_) {
    // When the store cannot be read, one of them has waited for that: the others need not, each in its turn.
    auto found =
        failure ? Result<std::optional<Run>>(std::unexpected(*failure)) : store_.find(waiter.tenant, waiter.id);
    if (!found) failure = found.error();
    over.push_back(last || now >= waiter.until || !found || !*found || (*found)->is_settled());
    if (over.back()) waiter.wake(std::move(found));
  }
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < over.size(); ++i) {
    if (over[i]) continue;
    is_notified_ |= looking_[i].is_notified;  // since it was read, perhaps
    waiters_.push_back(std::move(looking_[i]));
  }
  looking_.clear();
}

void Waiters::run() {
  Duration looked_at = clock_.elapsed();
  std::unique_lock lock(mutex_);
  for (;;) {
    const auto stirred = [&] { return closed_ || is_notified_; };
    if (waiters_.empty())
      changed_.wait(lock, stirred);
    else
      changed_.wait_for(lock, look_again_, stirred);
    const Duration now = clock_.elapsed();
    const bool all = closed_ || now - looked_at >= look_again_;
    if (all) looked_at = now;
    is_notified_ = false;
    const bool last = closed_;
    looking_ = take_due(now, all);
    for (Waiter& waiter : looking_) waiter.is_notified = false;
    lock.unlock();
    look(now, last);
    lock.lock();
    count_.store(waiters_.size(), std::memory_order_relaxed);
    if (last && waiters_.empty()) return;
  }
}

}  // namespace latchkey::api
