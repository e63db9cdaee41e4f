#include "http/outgoing_calls.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "http/chars.hpp"
#include "http/outgoing_url.hpp"

namespace latchkey::http {

OutgoingCalls::OutgoingCalls(OutgoingSettings settings, Clock& clock)
    : settings_(std::move(settings)),
      clock_(clock),
      loop_(settings_.connections_max),
      queue_({.total_max = settings_.connections_max, .per_origin_max = settings_.connections_per_host_max}) {}

OutgoingCalls::~OutgoingCalls() { LK_ASSERT(calls_.empty()); }

void OutgoingCalls::start(std::unique_ptr<OutgoingCall> started) {
  OutgoingCall& call = *started;
  calls_.emplace(call.id, std::move(started));
  enqueue(call);
}

void OutgoingCalls::enqueue(OutgoingCall& call) {
  call.ticket = queue_.push(origin_of(call.request.url), call);
  waiting_.emplace(call.deadline, &call);
}

void OutgoingCalls::run_once() {
  while (OutgoingCall* const call = queue_.take()) {
    waiting_.erase({call->deadline, call});
    begin(*call);
  }
  loop_.wait(time_to_next_expiry());
  while (const std::optional<CurlLoop::Done> done = loop_.take_done()) on_done(*done);
  expire_waiting();
}

void OutgoingCalls::begin(OutgoingCall& call) {
  call.transfer = take_transfer();
  const Duration left = call.deadline - clock_.elapsed();
  if (left <= Duration::zero()) return abort(call, CallFailure::timeout, "the time is over before the call started");
  if (auto refused = call.transfer->prepare(call.request, left, call)) {
    abort(call, CallFailure::invalid_request, std::move(*refused));
    return;
  }
  loop_.add(call.transfer->handle());
}

void OutgoingCalls::on_done(const CurlLoop::Done& done) {
  OutgoingCall& call = Transfer::call_of(done.handle);
  loop_.remove(done.handle);
  if (call.transfer->found_closed_connection()) {
    call.transfer->prepare_again();
    loop_.add(done.handle);
    return;
  }
  OutgoingResult result = call.transfer->finish(done.code);
  const auto* const response = std::get_if<OutgoingResponse>(&result);
  if (response == nullptr || !follow(call, *response)) return end(call, std::move(result));
  return_transfer(call);
  queue_.release(call.ticket);
  enqueue(call);
}

bool OutgoingCalls::follow(OutgoingCall& call, const OutgoingResponse& response) {
  if ((response.status != 307 && response.status != 308) || call.redirects == call.request.redirects_max) return false;
  const std::optional<std::string_view> location = response.find("Location");
  if (!location) return false;
  std::optional<RedirectTarget> target = resolve_redirect(call.request.url, *location);
  if (!target) return false;
  if (!target->is_same_origin)
    std::erase_if(call.request.headers, [](const OutgoingHeader& header) {
      return std::ranges::any_of(std::array{"Authorization", "Cookie", "Host"},
                                 [&](const char* name) { return equals_ignoring_case(header.name, name); });
    });
  call.request.url = std::move(target->url);
  call.redirects += 1;
  return true;
}

void OutgoingCalls::cancel(OutgoingClient::CallId id) {
  const auto found = calls_.find(id);
  if (found != calls_.end()) abort(*found->second, CallFailure::aborted, "the call was cancelled");
}

void OutgoingCalls::abort_all() {
  while (!calls_.empty()) abort(*calls_.begin()->second, CallFailure::aborted, "the client stopped");
}

std::optional<Duration> OutgoingCalls::time_to_next_expiry() {
  if (waiting_.empty()) return std::nullopt;
  return std::max(waiting_.begin()->first - clock_.elapsed(), Duration::zero());
}

void OutgoingCalls::expire_waiting() {
  if (waiting_.empty()) return;
  const Duration now = clock_.elapsed();
  while (!waiting_.empty() && waiting_.begin()->first <= now)
    abort(*waiting_.begin()->second, CallFailure::timeout, "no connection was free in time");
}

void OutgoingCalls::abort(OutgoingCall& call, CallFailure reason, std::string detail) {
  if (call.transfer && call.transfer->is_sent()) return end(call, Unknown{reason, std::move(detail)});
  end(call, NotSent{reason, std::move(detail)});
}

void OutgoingCalls::end(OutgoingCall& call, OutgoingResult result) {
  if (call.transfer) {
    loop_.remove(call.transfer->handle());
    return_transfer(call);
    queue_.release(call.ticket);
  } else {
    waiting_.erase({call.deadline, &call});
    queue_.remove(call.ticket);
  }
  auto ended = calls_.extract(call.id);
  ended.mapped()->callback(std::move(result));
}

std::unique_ptr<Transfer> OutgoingCalls::take_transfer() {
  if (idle_transfers_.empty()) return std::make_unique<Transfer>(settings_, sockets_);
  std::unique_ptr<Transfer> transfer = std::move(idle_transfers_.back());
  idle_transfers_.pop_back();
  return transfer;
}

void OutgoingCalls::return_transfer(OutgoingCall& call) { idle_transfers_.push_back(std::move(call.transfer)); }

}  // namespace latchkey::http
