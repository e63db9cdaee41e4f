#include <boost/asio/experimental/awaitable_operators.hpp>

#include "engine/await.hpp"
#include "engine/heartbeat.hpp"
#include "simulation/cast.hpp"
#include "simulation/effect.hpp"
#include "simulation/link.hpp"

namespace latchkey::sim {
namespace {

using namespace std::chrono_literals;

ClaimId draw_id(Process& me) {
  const std::uint64_t counter = me.random.next();
  return make_uuid_v7(me.clock.now(), counter, me.random.next());
}

EnqueueRequest draw_job(Process& me) {
  const Plan& plan = me.world.plan;
  EnqueueRequest request;
  request.tenant = kTenants[me.random.below(2)];
  request.function = "job";
  if (!me.random.one_in(3)) {
    request.key = "k" + std::to_string(me.random.below(plan.keys));
    request.guard = me.random.one_in(4) ? Guard::while_running : Guard::once;
    request.key_hash = hash_key(request.tenant, request.function, request.key);
  }
  request.on_doubt = me.random.one_in(3) ? OnDoubt::hold : OnDoubt::rerun;
  request.priority = static_cast<std::int32_t>(me.random.below(3)) - 1;
  request.delay = me.random.one_in(3) ? me.world.span(0ms, 3s) : 0ms;
  request.on_failed = static_cast<OnFailed>(me.random.below(4));
  const auto retries = me.random.one_in(3) ? static_cast<std::uint32_t>(me.random.below(4)) : plan.retries;
  request.retry = {.retries = retries, .first = 200ms, .factor = 3, .ceiling = 2s};
  request.window = plan.window;
  request.lease = plan.lease;
  request.caller = me.name;
  request.claim = draw_id(me);
  return request;
}

// Jobs that wait for jobs of the same tenant; the diamond's end waits for both sides.
void add_predecessors(Process& me, EnqueueRequest& request, const std::map<std::string, std::vector<RunId>>& made) {
  const auto known = made.find(request.tenant);
  if (known == made.end() || me.random.one_in(2)) return;
  for (const RunId& id : known->second)
    if (request.after.size() < 3 && me.random.one_in(2)) request.after.push_back(id);
}

class Worker {
 public:
  explicit Worker(Process& me) : me_(me), link_(*me.link), effect_(me), session_(draw_id(me)) {}

  Task<void> live() {
    while (me_.world.open_for_work) {
      co_await me_.clock.wait(me_.world.span(10ms, 800ms));
      if (me_.world.faults && me_.random.one_in(2)) co_await make_jobs();
      co_await work();
    }
  }

 private:
  Task<void> make_jobs() {
    std::vector<EnqueueRequest> requests;
    const auto count = me_.random.one_in(3) ? 1 + me_.random.below(3) : 1;
    for (std::uint64_t i = 0; i < count; ++i) add_predecessors(me_, requests.emplace_back(draw_job(me_)), made_);
    for (int i = 0; i < 4; ++i) {
      const auto replies = co_await enqueue(link_, requests);
      if (!replies) continue;
      for (const EnqueueReply& reply : *replies)
        if (const auto* enqueued = std::get_if<Enqueued>(&reply)) remember(enqueued->run);
      co_return;
    }
  }

  void remember(const Run& run) {
    auto& ids = made_[run.head->tenant];
    ids.insert(ids.begin(), run.id());
    if (ids.size() > 4) ids.pop_back();
  }

  Task<void> work() {
    const Duration asked_at = me_.clock.elapsed();
    TakeRequest request{.functions = {"job", "next"}, .limit = 1 + static_cast<std::uint32_t>(me_.random.below(3))};
    if (me_.random.one_in(4)) request.tenant = kTenants[me_.random.below(2)];
    request.session = session_;
    request.lease = me_.world.plan.lease;
    const auto taken = co_await take(link_, request);
    if (!taken) co_return;
    for (const Taken& one : *taken) co_await run_job(one, asked_at + me_.world.plan.lease);
  }

  Task<void> run_job(const Taken& job, Duration good_until) {
    using namespace asio::experimental::awaitable_operators;
    Heartbeat heartbeat(link_, me_.clock, job, me_.world.plan.lease, good_until);
    if (!heartbeat.is_good()) co_await heartbeat.beat();
    if (!heartbeat.is_good()) co_return;
    EffectResult ended = EffectInterrupted{};
    co_await (run_effect(job, ended) || heartbeat.run(effect_));
    SettleRequest request{job.run.head->tenant, job.run.id(), job.fence, as_ending(job, std::move(ended))};
    for (int i = 0; i < 5; ++i) {
      const auto replies = co_await settle(link_, std::vector{request});
      if (replies) co_return;
    }
  }

  Task<void> run_effect(const Taken& job, EffectResult& ended) {
    try {
      ended = co_await effect_.run(job);
    } catch (const std::runtime_error& error) {
      if (const auto* system = dynamic_cast<const boost::system::system_error*>(&error);
          system && system->code() == asio::error::operation_aborted)
        throw;
      ended = EffectFailed{.message = error.what(), .outcome_unknown = true};
    }
  }

  Ending as_ending(const Taken& job, EffectResult ended) {
    if (auto* done = std::get_if<EffectDone>(&ended)) {
      Complete complete{std::move(done->result), {}};
      if (job.run.head->function == "job" && me_.random.one_in(4)) complete.follow_ups.push_back(follow_up());
      return complete;
    }
    if (auto* failed = std::get_if<EffectFailed>(&ended))
      return Fail{failed->message, failed->code, failed->retryable, failed->outcome_unknown, failed->retry_after};
    if (me_.random.one_in(2)) return Snooze{500ms};
    return Release{};
  }

  EnqueueRequest follow_up() {
    EnqueueRequest next = draw_job(me_);
    next.function = "next";
    next.key.clear();
    next.claim = {};
    if (me_.random.one_in(3)) {  // its key may belong to another request
      next.key = "n" + std::to_string(me_.random.below(2));
      next.guard = Guard::once;
      next.fingerprint = sha256(me_.random.one_in(2) ? "one" : "other");
    }
    return next;
  }

  Process& me_;
  SimLink& link_;
  SimEffect effect_;
  Uuid session_;
  std::map<std::string, std::vector<RunId>> made_;
};

}  // namespace

Task<void> live_as_worker(Process& me) {
  Worker worker(me);
  co_await worker.live();
}

}  // namespace latchkey::sim
