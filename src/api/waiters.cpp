#include "api/waiters.hpp"

#include <algorithm>

namespace latchkey::api {

Waiters::Waiters(RunReader& store, Clock& clock, Duration poll_interval)
    : store_(store), clock_(clock), poll_interval_(poll_interval), thread_([this] { run(); }) {}

void Waiters::add(std::optional<std::string> tenant, RunId id, Duration span, Wake wake) {
  {
    std::unique_lock lock(mutex_);
    if (closed_) {
      lock.unlock();
      return wake(store_.find(tenant, id));
    }
    // The run is checked at once, because it may have settled since the caller read it.
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
    for (auto* waiters : {&waiters_, &checking_})
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

void Waiters::check_runs(Duration now, bool last) {
  std::vector<bool> over;
  std::optional<Error> failure;
  for (Waiter& waiter : checking_) {
    // After one failed read the others get the same error, so that they do not wait for the store one after the other.
    auto found =
        failure ? Result<std::optional<Run>>(std::unexpected(*failure)) : store_.find(waiter.tenant, waiter.id);
    if (!found) failure = found.error();
    over.push_back(last || now >= waiter.until || !found || !*found || (*found)->is_settled());
    if (over.back()) waiter.wake(std::move(found));
  }
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < over.size(); ++i) {
    if (over[i]) continue;
    is_notified_ |= checking_[i].is_notified;  // may have happened after the read
    waiters_.push_back(std::move(checking_[i]));
  }
  checking_.clear();
}

void Waiters::run() {
  Duration polled_at = clock_.elapsed();
  std::unique_lock lock(mutex_);
  for (;;) {
    const auto has_work = [&] { return closed_ || is_notified_; };
    if (waiters_.empty())
      changed_.wait(lock, has_work);
    else
      changed_.wait_for(lock, poll_interval_, has_work);
    const Duration now = clock_.elapsed();
    const bool all = closed_ || now - polled_at >= poll_interval_;
    if (all) polled_at = now;
    is_notified_ = false;
    const bool last = closed_;
    checking_ = take_due(now, all);
    for (Waiter& waiter : checking_) waiter.is_notified = false;
    lock.unlock();
    check_runs(now, last);
    lock.lock();
    count_.store(waiters_.size(), std::memory_order_relaxed);
    if (last && waiters_.empty()) return;
  }
}

}  // namespace latchkey::api
