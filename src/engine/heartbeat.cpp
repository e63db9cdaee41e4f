#include "engine/heartbeat.hpp"

#include <boost/asio/experimental/awaitable_operators.hpp>

#include "base/seeded_bug.hpp"
#include "engine/await.hpp"

namespace latchkey {
namespace {

constexpr Duration kHeartbeatRetryDelay = std::chrono::milliseconds{100};

}  // namespace

Task<bool> Heartbeat::beat() {
  const Duration sent_at = clock_.elapsed();
  std::vector<ExtendRequest> requests{{.tenant = tenant_, .id = run_, .fence = fence_, .lease = lease_}};
  const auto replies = co_await extend(claims_, std::move(requests));
  trouble_ = replies ? std::nullopt : std::optional(replies.error());
  if (!replies) co_return false;
  const auto* extended = std::get_if<Extended>(&replies->front());
  if (!extended) {
    lost_ = true;
    co_return false;
  }
  const Duration from = LK_SEEDED(lease_measured_from_reply) ? clock_.elapsed() : sent_at;
  good_until_ = std::max(good_until_, from + lease_);
  cancel_requested_ = extended->cancel_requested;
  co_return true;
}

void Heartbeat::stop_if_needed(SideEffect& effect) {
  const bool over = !is_good() && !LK_SEEDED(lost_lease_not_noticed);
  if (stopped_ || !(over || cancel_requested_)) return;
  stopped_ = true;
  effect.stop(over ? StopReason::lease_lost : StopReason::cancel_requested);
}

// Stops the effect when the lease expires, even while a heartbeat waits for its reply.
Task<void> Heartbeat::watch(SideEffect& effect) {
  while (!stopped_) {
    co_await clock_.wait(std::max(Duration{1}, good_until_ - clock_.elapsed()));
    stop_if_needed(effect);
  }
}

Task<void> Heartbeat::beat_on(SideEffect& effect) {
  Duration pause = lease_ / 3;
  while (!lost_) {
    co_await clock_.wait(pause);
    const bool extended = co_await beat();
    pause = extended ? lease_ / 3 : std::min(kHeartbeatRetryDelay, lease_ / 3);
    stop_if_needed(effect);
  }
}

Task<void> Heartbeat::run(SideEffect& effect) {
  using namespace asio::experimental::awaitable_operators;
  co_await (watch(effect) && beat_on(effect));
  for (;;) co_await clock_.wait(std::chrono::hours{1});
}

}  // namespace latchkey
