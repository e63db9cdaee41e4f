// Call: one authorized request on its way through a handler, and the Answer that replies to it.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "api/services.hpp"
#include "http/problem.hpp"
#include "http/reply.hpp"

namespace latchkey::api {

// Replies to one request, once, from any thread. Errors become problem details, and every response is counted.
class Answer {
 public:
  // `label` names the request in the log; empty: it is not logged.
  Answer(Services& services, http::Reply reply, std::string label = "")
      : services_(&services), reply_(std::move(reply)), label_(std::move(label)) {}

  void send(http::Response response);
  void send_json(int status, std::string body);
  // Adds Retry-After to errors of the store and of overload, and WWW-Authenticate to UNAUTHENTICATED.
  void send_error(const Error& error);
  void send_problem(const Error& error, std::span<const http::ProblemMember> extra,
                    std::optional<Duration> retry_after);

 private:
  Services* services_;
  http::Reply reply_;
  std::string label_;
};

// Views are valid until the handler returns.
struct Call {
  Services& services;
  http::Request& request;
  std::shared_ptr<const Principal> principal;  // null on open routes
  std::string_view parameter;                  // the text in place of {…} in the route's path
  Answer answer;
  std::optional<std::string> tenant;  // the result of the latest find_tenant()

  // Calls api::find_tenant() for this request and remembers the tenant.
  Result<std::optional<std::string>> find_tenant(std::string_view named);
};

// The queue of the blocking pool in which the call waits: its tenant's. Calls for all tenants share a queue, and each
// open route has its own.
std::string queue_of(const Call& call);

// Runs work(answer) in the blocking pool and moves the answer there.
template <class Work>
void do_later(Call& call, Work work) {
  // Shared, because exactly one of `work` and `refuse` replies.
  auto answer = std::make_shared<Answer>(std::move(call.answer));
  call.services.blocking_pool.post({.queue = queue_of(call),
                                    .work = [answer, work = std::move(work)]() mutable { work(*answer); },
                                    .refuse = [answer](const Error& error) { answer->send_error(error); }});
}

// Runs work(answer), which does one short read: on this thread, or in the blocking pool where reads may block.
template <class Work>
void do_reading(Call& call, Work work) {
  if (call.services.store.reads_block()) return do_later(call, std::move(work));
  work(call.answer);
}

// The run id in the path. A parameter that is not a UUID gives the nil id, which no run has, so the reply is NOT_FOUND.
RunId id_of(const Call& call);

}  // namespace latchkey::api
