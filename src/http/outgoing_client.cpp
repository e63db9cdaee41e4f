#include "http/outgoing_client.hpp"

#include <algorithm>
#include <csignal>
#include <utility>

#include "http/chars.hpp"
#include "http/outgoing_calls.hpp"

namespace latchkey::http {
namespace {

constexpr Duration kTimeoutMax = std::chrono::days{365};  // so that a deadline cannot overflow

}  // namespace

std::optional<std::string_view> OutgoingResponse::find(std::string_view name) const {
  for (const OutgoingHeader& header : headers)
    if (equals_ignoring_case(header.name, name)) return header.value;
  return std::nullopt;
}

OutgoingClient::OutgoingClient(OutgoingSettings settings, Clock& clock)
    : clock_(clock), calls_(std::make_unique<OutgoingCalls>(std::move(settings), clock)), thread_([this] { run(); }) {}

OutgoingClient::~OutgoingClient() {
  post([](Inbox& inbox) { inbox.is_stopping = true; });
  thread_.join();
}

template <class Change>
void OutgoingClient::post(Change change) {
  bool is_first = false;
  {
    const std::lock_guard lock(mutex_);
    is_first = inbox_.is_empty();
    change(inbox_);
  }
  if (is_first) calls_->wake();
}

OutgoingClient::CallId OutgoingClient::start(OutgoingRequest request, Callback callback) {
  auto call = std::make_unique<OutgoingCall>();
  call->deadline = clock_.elapsed() + std::min<Duration>(request.timeout, kTimeoutMax);
  call->request = std::move(request);
  call->callback = std::move(callback);
  CallId id = 0;
  post([&](Inbox& inbox) {
    id = call->id = ++last_id_;
    inbox.starts.push_back(std::move(call));
  });
  return id;
}

void OutgoingClient::cancel(CallId id) {
  post([&](Inbox& inbox) { inbox.cancels.push_back(id); });
}

void OutgoingClient::run() {
  // Signals are for the main thread. SIGPIPE is blocked as well, for TLS libraries that write without MSG_NOSIGNAL.
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);

  Inbox taken;
  for (;;) {
    taken.starts.clear();
    taken.cancels.clear();
    {
      const std::lock_guard lock(mutex_);
      std::swap(taken.starts, inbox_.starts);
      std::swap(taken.cancels, inbox_.cancels);
      taken.is_stopping = inbox_.is_stopping;
    }
    for (auto& call : taken.starts) calls_->start(std::move(call));
    for (const CallId id : taken.cancels) calls_->cancel(id);
    if (!taken.is_stopping) {
      calls_->run_once();
      continue;
    }
    if (calls_->is_empty()) return;
    calls_->abort_all();
  }
}

}  // namespace latchkey::http
