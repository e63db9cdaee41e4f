// OutgoingClient: calls the HTTP servers of users: functions, probes, health checks and webhooks. http:// and https://.
//
// A request is sent at most once. libcurl would send it again when a reused connection closes before a response; this
// client stops that, and the result is Unknown. A connection that the server closed while it was idle is not reused: a
// call finds that out before it sends, and connects again. A connection carries one call at a time.
//
// Each call has exactly one result. The client's own thread calls the callback; the callback must not block or throw.
// It may call start() and cancel(). start() and cancel() may be called by any thread.
//
// The client verifies TLS certificates. It has no cookies, no .netrc, and uses no proxy unless the settings name one.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "http/outgoing.hpp"

namespace latchkey::http {

class OutgoingCalls;
struct OutgoingCall;

class OutgoingClient {
 public:
  using CallId = std::uint64_t;
  using Callback = std::move_only_function<void(OutgoingResult)>;

  // `clock` must outlive the client. It measures how long a call waits for a connection; sockets have the kernel's
  // timers. Throws std::system_error when the process has no free descriptor.
  OutgoingClient(OutgoingSettings settings, Clock& clock);
  // Aborts all calls, calls back each and joins. A callback that starts a new call now gets `aborted` again, so it must
  // not start one for each `aborted`.
  ~OutgoingClient();
  OutgoingClient(const OutgoingClient&) = delete;
  OutgoingClient& operator=(const OutgoingClient&) = delete;

  CallId start(OutgoingRequest request, Callback callback);
  // Ends the call with `aborted`: NotSent when it has not sent anything yet, else Unknown. Does nothing when the call
  // already has its result.
  void cancel(CallId id);

 private:
  // Commands for the thread.
  struct Inbox {
    std::vector<std::unique_ptr<OutgoingCall>> starts;
    std::vector<CallId> cancels;
    bool is_stopping = false;

    bool is_empty() const { return starts.empty() && cancels.empty() && !is_stopping; }
  };

  void run();
  // Changes the inbox and wakes the thread.
  template <class Change>
  void post(Change change);

  Clock& clock_;
  const std::unique_ptr<OutgoingCalls> calls_;  // used by the thread
  std::mutex mutex_;
  Inbox inbox_;
  CallId last_id_ = 0;
  std::thread thread_;
};

}  // namespace latchkey::http
