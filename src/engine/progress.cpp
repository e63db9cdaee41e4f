#include "engine/progress.hpp"

namespace latchkey {

void Progress::note(RunId run, Fence fence, Bytes text) {
  if (runs_max_ == 0) return;
  const std::lock_guard lock(mutex_);
  if (const auto known = by_run_.find(run); known != by_run_.end()) {
    if (known->second->fence > fence) return;
    entries_.erase(known->second);
    by_run_.erase(known);
  } else if (entries_.size() >= runs_max_) {
    by_run_.erase(entries_.front().run);
    entries_.pop_front();
  }
  entries_.push_back({run, fence, std::move(text)});
  by_run_.emplace(run, std::prev(entries_.end()));
  count_.store(entries_.size(), std::memory_order_relaxed);
}

void Progress::forget(RunId run) {
  if (count_.load(std::memory_order_relaxed) == 0) return;
  const std::lock_guard lock(mutex_);
  const auto known = by_run_.find(run);
  if (known == by_run_.end()) return;
  entries_.erase(known->second);
  by_run_.erase(known);
  count_.store(entries_.size(), std::memory_order_relaxed);
}

std::optional<Bytes> Progress::find(const Run& run) const {
  if (count_.load(std::memory_order_relaxed) == 0 || !run.as<Running>()) return std::nullopt;
  const std::lock_guard lock(mutex_);
  const auto known = by_run_.find(run.id());
  if (known == by_run_.end() || known->second->fence != run.fence) return std::nullopt;
  return known->second->text;
}

}  // namespace latchkey
