#include "http/body_stream.hpp"

#include "base/assert.hpp"
#include "http/stream_buffer.hpp"

namespace latchkey::http {

BodyStream& BodyStream::operator=(BodyStream&& other) noexcept {
  if (this == &other) return *this;
  abandon();
  buffer_ = std::move(other.buffer_);
  return *this;
}

BodyStream::~BodyStream() { abandon(); }

WriteState BodyStream::write(std::string bytes) {
  LK_ASSERT(buffer_ != nullptr);
  return buffer_->write(std::move(bytes));
}

void BodyStream::finish() {
  LK_ASSERT(buffer_ != nullptr);
  std::exchange(buffer_, nullptr)->finish();
}

bool BodyStream::is_closed() const { return buffer_ == nullptr || buffer_->is_closed(); }

void BodyStream::abandon() {
  if (buffer_) std::exchange(buffer_, nullptr)->abandon();
}

}  // namespace latchkey::http
