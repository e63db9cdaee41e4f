// What the handlers work with, and the call that one of them answers.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string_view>

#include "api/auth.hpp"
#include "api/blocking_pool.hpp"
#include "api/waiters.hpp"
#include "base/clock.hpp"
#include "base/random.hpp"
#include "engine/engine.hpp"
#include "http/problem.hpp"
#include "http/reply.hpp"
#include "telemetry/telemetry.hpp"

namespace latchkey::api {

// Outlives every call: callbacks of the store hold a reference.
struct Services {
  Services(Engine& the_engine, Clock& the_clock, Random& the_random)
      : engine(the_engine),
        store(the_engine.store()),
        random(the_random),
        tokens(store.records()),
        blocking_pool(store.reads_block() ? kPatientThreads : 1),
        waiters(store, the_clock) {}

  // A store elsewhere has a connection for reads for each of them.
  static constexpr unsigned kPatientThreads = 8;

  Engine& engine;
  Store& store;
  Random& random;
  Telemetry telemetry;
  TokenTable tokens;
  BlockingPool blocking_pool;
  Waiters waiters;
};

// The right to answer, with what every answer has in common: errors as problems, and counts.
class Answer {
 public:
  Answer(Services& services, http::Reply reply) : services_(&services), reply_(std::move(reply)) {}

  void send(http::Response response);
  void send_json(int status, std::string body);
  // STORE_FULL and its like carry Retry-After, UNAUTHENTICATED says how to authenticate.
  void send_error(const Error& error);
  void send_problem(const Error& error, std::span<const http::ProblemMember> extra,
                    std::optional<Duration> retry_after);

 private:
  Services* services_;
  http::Reply reply_;
};

// One request that was routed and may be done. Views are good until the handler returns.
struct Call {
  Services& services;
  http::Request& request;
  std::shared_ptr<const Principal> principal;  // null on public routes
  std::string_view parameter;                  // what stands for {id} in the path
  Answer answer;
  std::optional<std::string> tenant;  // as it was last found

  // As the function of that name says.
  Result<std::optional<std::string>> find_tenant(std::string_view named);
};

// Where it waits in the blocking_pool: with others of its tenant. What is for all tenants has a line of its own, and so
// has each thing that anybody may ask.
std::string line_of(const Call& call);

// Moves the answer and `work` to the blocking_pool: work(answer).
template <class Work>
void do_later(Call& call, Work work) {
  // Shared, as what is refused must be answered too.
  auto kept = std::make_shared<Answer>(std::move(call.answer));
  call.services.blocking_pool.post({.line = line_of(call),
                                    .work = [kept, work = std::move(work)]() mutable { work(*kept); },
                                    .refuse = [kept](const Error& why) { kept->send_error(why); }});
}

// One short read: work(answer), here and now, or in the blocking_pool where reads may wait.
template <class Work>
void do_reading(Call& call, Work work) {
  if (call.services.store.reads_block()) return do_later(call, std::move(work));
  work(call.answer);
}

// The run's id in the path; a nil one, which no run has, when it is no UUID: that is answered like any unknown id.
RunId id_of(const Call& call);

}  // namespace latchkey::api
