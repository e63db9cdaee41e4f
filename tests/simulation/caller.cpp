#include <stdexcept>

#include "engine/await.hpp"
#include "simulation/cast.hpp"
#include "simulation/effect.hpp"
#include "simulation/link.hpp"

namespace latchkey::sim {
namespace {

using namespace std::chrono_literals;

ClaimRequest draw_request(Process& me) {
  World& world = me.world;
  ClaimRequest request;
  request.tenant = kTenants[me.random.below(2)];
  switch (me.random.below(4)) {
    case 0:
      request.function = "sync";
      request.guard = Guard::while_running;
      break;
    case 1:
      request.function = "mail";
      request.on_doubt = OnDoubt::hold;
      break;
    default:
      request.function = me.random.one_in(4) ? "job" : "pay";
  }
  request.key = "k" + std::to_string(me.random.below(world.plan.keys));
  request.key_hash = hash_key(request.tenant, request.function, request.key);
  if (world.plan.fingerprints && !me.random.one_in(3))
    request.fingerprint = sha256(me.random.one_in(5) ? "another body" : "body of " + request.key);
  // A caller that reopens a key may allow more or fewer attempts than the first caller.
  const auto retries = me.random.one_in(3) ? static_cast<std::uint32_t>(me.random.below(4)) : world.plan.retries;
  request.retry = {.retries = retries, .first = 200ms, .factor = 3, .ceiling = 2s};
  if (me.random.one_in(3)) request.retry.jitter = Jitter::full;
  request.window = world.plan.window;
  request.lease = world.plan.lease;
  request.caller = me.name;
  return request;
}

void record_reply(Process& me, const ClaimRequest& request, const Result<RunOnceReply>& reply) {
  if (!reply) return;
  if (const auto* replay = std::get_if<Replay>(&*reply)) me.world.history.caller_got_replay(request, replay->run);
  if (const auto* ran = std::get_if<Ran>(&*reply)) me.world.history.caller_got_outcome(ran->run);
}

// Releases the run during its retry delay, as Ctrl-C does, so that the next caller does not wait. The link may lose or
// delay the request.
Task<void> cancel_retry_delay(Process& me, const Result<RunOnceReply>& reply) {
  const auto* ran = reply ? std::get_if<Ran>(&*reply) : nullptr;
  if (!ran || !ran->run.as<Queued>()) co_return;
  const SettleRequest request{ran->run.head->tenant, ran->run.id(), ran->run.fence, Release{}};
  if (me.random.one_in(3)) co_await me.clock.wait(me.world.span(0ms, 1s));
  co_await settle(*me.link, std::vector{request});
}

}  // namespace

Digest hash_key(const std::string& tenant, const std::string& function, const std::string& key) {
  return thread_sha256().add_prefixed(tenant).add_prefixed(function).add_prefixed(key).finish();
}

Task<EffectResult> SimEffect::run(const Won& won) {
  stopped_ = false;
  me_.world.history.effect_started(won);
  const auto steps = 1 + me_.random.below(6);
  for (std::uint64_t i = 0; i < steps && !stopped_; ++i) {
    co_await me_.clock.wait(me_.world.span(0ms, me_.world.plan.effect_max / static_cast<int>(steps)));
    if (!stopped_) me_.world.history.effect_acts(won, *me_.life, me_.world.last_forward_jump);
  }
  co_return end(won);
}

EffectResult SimEffect::end(const Won& won) {
  if (stopped_)
    return me_.random.one_in(2) ? EffectResult{EffectInterrupted{}}
                                : EffectFailed{.message = "stopped half way", .outcome_unknown = true};
  switch (me_.random.below(12)) {
    case 0:
      return EffectFailed{.message = "no luck", .code = "TRY_AGAIN"};
    case 1:
      return EffectFailed{.message = "no luck", .code = "TRY_AGAIN", .retry_after = 1s};
    case 2:
      return EffectFailed{.message = "never", .retryable = false};
    case 3:
      return EffectFailed{.message = "who knows", .outcome_unknown = true};
    case 4:
      throw std::runtime_error("broken effect");
    case 5:
      return EffectInterrupted{};
    default:
      return EffectDone{
          won.run.head->tenant + " " + won.run.head->key + " by " + me_.name + " " + std::to_string(me_.random.next()),
          {}};
  }
}

Task<void> live_as_caller(Process& me, std::uint32_t calls) {
  SimLink& link = *me.link;
  SimEffect effect(me);
  me.busy = true;
  for (std::uint32_t i = 0; i < calls; ++i) {
    co_await me.clock.wait(me.world.span(0ms, me.random.one_in(3) ? 50ms : 3s));
    ClaimRequest request = draw_request(me);
    RunOnceSettings settings{
        .wait = me.random.one_in(2), .wait_max = 10s, .retry = !me.random.one_in(4), .patience = 20s};
    me.claims.clear();
    const Result<RunOnceReply> reply = co_await run_once(link, me.clock, me.random, request, effect, settings);
    record_reply(me, request, reply);
    if (!settings.retry) co_await cancel_retry_delay(me, reply);
  }
  me.busy = false;
}

}  // namespace latchkey::sim
