#include "http/reply_queue.hpp"

#include "http/stream_buffer.hpp"

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
  if (has_one_item()) owner_->wake();
}

void ReplyQueue::notify(std::shared_ptr<StreamBuffer> stream) {
  {
    const std::lock_guard lock(mutex_);
    if (owner_ != nullptr) {
      streams_.push_back(std::move(stream));
      if (has_one_item()) owner_->wake();
      return;
    }
  }
  stream->drop();
}

void ReplyQueue::drain(std::vector<Entry>& entries, std::vector<std::shared_ptr<StreamBuffer>>& streams) {
  const std::lock_guard lock(mutex_);
  entries_.swap(entries);
  streams_.swap(streams);
}

void ReplyQueue::close() {
  std::vector<Entry> entries;
  std::vector<std::shared_ptr<StreamBuffer>> streams;
  {
    const std::lock_guard lock(mutex_);
    owner_ = nullptr;
    entries.swap(entries_);
    streams.swap(streams_);
  }
  // Without the lock: a callback of a stream may call notify().
  for (const auto& stream : streams) stream->close();
}

}  // namespace latchkey::http
