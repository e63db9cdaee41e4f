#include "http/stream_buffer.hpp"

#include <utility>

namespace latchkey::http {

StreamBuffer::StreamBuffer(std::shared_ptr<ReplySink> sink, Ticket ticket, Response head, StreamEvents events,
                           AtStop at_stop)
    : sink_(std::move(sink)),
      limits_(sink_->stream_limits()),
      ticket_(ticket),
      at_stop_(at_stop),
      head_(std::move(head)),
      events_(std::move(events)),
      pending_(std::exchange(head_.body, {})),
      buffered_bytes_(pending_.size()) {}

// ---- producer ----

WriteState StreamBuffer::write(std::string bytes) {
  WriteState state = WriteState::ready;
  bool must_notify = false;
  {
    const std::lock_guard lock(mutex_);
    if (phase_ != Phase::open) return WriteState::closed;
    if (bytes.empty()) return is_drain_wanted_ ? WriteState::full : WriteState::ready;
    buffered_bytes_ += bytes.size();
    if (buffered_bytes_ > limits_.bytes_max) {
      phase_ = Phase::overflowed;
      pending_ = {};
      state = WriteState::closed;
      must_notify = true;  // even if the loop is notified already: it does not take() while it sends
    } else {
      if (pending_.empty())
        pending_ = std::move(bytes);
      else
        pending_.append(bytes);
      if (buffered_bytes_ >= limits_.high_water_bytes) {
        is_drain_wanted_ = true;
        state = WriteState::full;
      }
      must_notify = !std::exchange(is_notified_, true);
    }
  }
  if (must_notify) notify();
  return state;
}

void StreamBuffer::finish() {
  {
    const std::lock_guard lock(mutex_);
    if (phase_ != Phase::open) return;
    phase_ = Phase::finished;
    if (std::exchange(is_notified_, true)) return;
  }
  notify();
}

void StreamBuffer::abandon() {
  {
    const std::lock_guard lock(mutex_);
    if (phase_ != Phase::open) return;
    phase_ = Phase::abandoned;
    pending_ = {};
  }
  notify();
}

bool StreamBuffer::is_closed() const {
  const std::lock_guard lock(mutex_);
  return phase_ != Phase::open;
}

// ---- loop ----

StreamBuffer::Batch StreamBuffer::take() {
  const std::lock_guard lock(mutex_);
  is_notified_ = false;
  const bool is_last = phase_ == Phase::finished || phase_ == Phase::closed;
  return {std::exchange(pending_, {}), is_last};
}

void StreamBuffer::note_sent(std::size_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    buffered_bytes_ -= bytes;
    if (phase_ != Phase::open || !is_drain_wanted_ || buffered_bytes_ > limits_.high_water_bytes / 2) return;
    is_drain_wanted_ = false;
  }
  if (events_.on_drain) events_.on_drain();
}

bool StreamBuffer::is_broken() const {
  const std::lock_guard lock(mutex_);
  return phase_ == Phase::abandoned || phase_ == Phase::overflowed;
}

bool StreamBuffer::is_finished() const {
  const std::lock_guard lock(mutex_);
  return phase_ == Phase::finished;
}

void StreamBuffer::end() {
  StreamEvents events;
  {
    const std::lock_guard lock(mutex_);
    if (phase_ != Phase::open) return;
    phase_ = Phase::closed;
    events = std::exchange(events_, {});
  }
  if (events.on_closed) events.on_closed();
}

void StreamBuffer::close() {
  StreamEvents events;  // destroyed without the lock: it may own the BodyStream
  bool is_producer_waiting = false;
  {
    const std::lock_guard lock(mutex_);
    is_producer_waiting = phase_ == Phase::open || phase_ == Phase::overflowed;
    phase_ = Phase::closed;
    pending_ = {};
    events = std::exchange(events_, {});
  }
  if (is_producer_waiting && events.on_closed) events.on_closed();
}

void StreamBuffer::drop() {
  StreamEvents events;
  const std::lock_guard lock(mutex_);
  phase_ = Phase::closed;
  pending_ = {};
  std::swap(events, events_);
}

}  // namespace latchkey::http
