#include "http/reply.hpp"

#include "base/assert.hpp"
#include "http/problem.hpp"
#include "http/stream_buffer.hpp"

namespace latchkey::http {

Reply& Reply::operator=(Reply&& other) noexcept {
  if (this == &other) return *this;
  abandon();
  sink_ = std::move(other.sink_);
  ticket_ = other.ticket_;
  return *this;
}

void Reply::send(Response response) {
  LK_ASSERT(sink_ != nullptr);
  const std::shared_ptr<ReplySink> sink = std::move(sink_);
  sink->deliver(ticket_, std::move(response));
}

BodyStream Reply::start(Response head, StreamEvents events, AtStop at_stop) {
  LK_ASSERT(sink_ != nullptr);
  const std::shared_ptr<ReplySink> sink = std::move(sink_);
  auto buffer = std::make_shared<StreamBuffer>(sink, ticket_, std::move(head), std::move(events), at_stop);
  sink->notify(buffer);
  return BodyStream(std::move(buffer));
}

void Reply::abandon() {
  if (sink_) send(make_problem({Code::INTERNAL, "the handler ended without a response"}));
}

}  // namespace latchkey::http
