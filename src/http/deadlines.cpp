#include "http/deadlines.hpp"

#include <algorithm>

namespace latchkey::http {

Deadlines::Deadlines(Duration tick, Duration now)
    : tick_ms_(std::max<std::int64_t>(tick.count(), 1)), now_tick_(static_cast<std::uint64_t>(now.count() / tick_ms_)) {
  for (Entry& head : slots_) head.previous = head.next = &head;
}

void Deadlines::set(Entry& entry, Duration now, Duration after) {
  // The current tick has partly passed, so one tick is added. Otherwise the deadline would expire early.
  const auto ticks = static_cast<std::uint64_t>(std::max<std::int64_t>(after.count(), 0) / tick_ms_) + 2;
  const std::uint64_t due_tick = std::max(static_cast<std::uint64_t>(now.count() / tick_ms_), now_tick_) + ticks;
  entry.due_tick = due_tick;
  if (entry.next != nullptr && entry.slot_tick <= due_tick) return;
  cancel(entry);
  entry.due_tick = due_tick;
  link(entry);
}

void Deadlines::cancel(Entry& entry) {
  entry.due_tick = kNever;
  if (entry.next == nullptr) return;
  entry.previous->next = entry.next;
  entry.next->previous = entry.previous;
  entry.previous = entry.next = nullptr;
}

void Deadlines::link(Entry& entry) {
  entry.slot_tick = std::min(entry.due_tick, now_tick_ + kSlots - 1);
  Entry& head = slots_[entry.slot_tick % kSlots];
  entry.next = &head;
  entry.previous = head.previous;
  head.previous->next = &entry;
  head.previous = &entry;
}

void Deadlines::advance(Duration now, const std::function<void(Entry&)>& expire) {
  const auto target = static_cast<std::uint64_t>(now.count() / tick_ms_);
  // After a pause longer than the wheel, one round visits every slot.
  if (target > now_tick_ + kSlots) now_tick_ = target - kSlots;
  while (now_tick_ < target) {
    ++now_tick_;
    visit_slot(expire);
  }
}

void Deadlines::visit_slot(const std::function<void(Entry&)>& expire) {
  Entry& head = slots_[now_tick_ % kSlots];
  if (head.next == &head) return;
  // The entries are moved to a separate list, so entries that `expire` sets are not visited in this round.
  Entry due{.previous = head.previous, .next = head.next};
  due.previous->next = due.next->previous = &due;
  head.previous = head.next = &head;
  while (due.next != &due) {
    Entry& entry = *due.next;
    const std::uint64_t due_tick = entry.due_tick;
    cancel(entry);
    if (due_tick == kNever) continue;
    entry.due_tick = due_tick;
    if (due_tick <= now_tick_)
      expire(entry);
    else
      link(entry);
  }
}

}  // namespace latchkey::http
