// OutgoingCalls: the calls of an OutgoingClient, from the queue over one or more transfers to the result.
//
// A call waits in the queue until a connection is free for its origin, then runs as a transfer. A redirect puts it into
// the queue again. Calls callbacks only from run_once(), cancel() and abort_all(), never from within libcurl. One
// thread; only wake() may be called by others.
#pragma once

#include <memory>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "http/curl_loop.hpp"
#include "http/origin_queue.hpp"
#include "http/outgoing_client.hpp"
#include "http/transfer.hpp"

namespace latchkey::http {

struct OutgoingCall {
  OutgoingClient::CallId id = 0;
  OutgoingRequest request;
  OutgoingClient::Callback callback;
  Duration deadline{};  // of clock.elapsed()
  unsigned redirects = 0;
  OriginQueue::Ticket ticket{};
  std::unique_ptr<Transfer> transfer;  // while it runs
};

class OutgoingCalls {
 public:
  OutgoingCalls(OutgoingSettings settings, Clock& clock);
  ~OutgoingCalls();

  void start(std::unique_ptr<OutgoingCall> call);
  void cancel(OutgoingClient::CallId id);
  void abort_all();
  bool is_empty() const { return calls_.empty(); }

  // Starts transfers, waits until a socket or a timer is ready, and ends the calls that are done.
  void run_once();
  // Makes the current or next run_once() return. Any thread.
  void wake() { loop_.wake(); }

 private:
  void enqueue(OutgoingCall& call);
  void begin(OutgoingCall& call);
  void on_done(const CurlLoop::Done& done);
  // Changes the request for the redirect in `response`. Returns false when the response is the call's result.
  bool follow(OutgoingCall& call, const OutgoingResponse& response);
  void expire_waiting();
  std::optional<Duration> time_to_next_expiry();
  void abort(OutgoingCall& call, CallFailure reason, std::string detail);
  // Removes the call and calls back.
  void end(OutgoingCall& call, OutgoingResult result);
  std::unique_ptr<Transfer> take_transfer();
  void return_transfer(OutgoingCall& call);

  const OutgoingSettings settings_;
  Clock& clock_;
  OpenSockets sockets_;
  CurlLoop loop_;
  OriginQueue queue_;
  std::set<std::pair<Duration, OutgoingCall*>> waiting_;  // by deadline
  std::vector<std::unique_ptr<Transfer>> idle_transfers_;
  std::unordered_map<OutgoingClient::CallId, std::unique_ptr<OutgoingCall>> calls_;
};

}  // namespace latchkey::http
