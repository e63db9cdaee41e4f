#include "http/reply_queue.hpp"

namespace latchkey::http {
namespace {

thread_local const ReplyQueue* queue_of_thread = nullptr;

}  // namespace

void ReplyQueue::adopt_thread() { queue_of_thread = this; }

void ReplyQueue::deliver(Ticket ticket, Response response) {
  Entry entry{ticket, std::move(response)};
  if (queue_of_thread == this && owner_ != nullptr && owner_->deliver_inline(entry)) return;
  const std::lock_guard lock(mutex_);
  if (owner_ == nullptr) return;
  entries_.push_back(std::move(entry));
  if (entries_.size() == 1) owner_->wake();
}

void ReplyQueue::drain(std::vector<Entry>& entries) {
  const std::lock_guard lock(mutex_);
  entries_.swap(entries);
}

void ReplyQueue::close() {
  const std::lock_guard lock(mutex_);
  owner_ = nullptr;
  entries_.clear();
}

}  // namespace latchkey::http
