#include "engine/run_once.hpp"

#include <boost/asio/experimental/awaitable_operators.hpp>

#include "base/seeded_bug.hpp"
#include "engine/await.hpp"
#include "engine/heartbeat.hpp"
#include "engine/validate.hpp"

namespace latchkey {
namespace {

constexpr Duration kRetryDelay = std::chrono::milliseconds{100};
constexpr Duration kRetryDelayMax = std::chrono::seconds{5};

ClaimId draw_claim_id(Clock& clock, Random& random) {
  const std::uint64_t counter = random.next();
  return make_uuid_v7(clock.now(), counter, random.next());
}

// The delays between requests that got no reply.
struct RetryBackoff {
  Clock& clock;
  Duration deadline;
  Duration pause = kRetryDelay;

  static RetryBackoff within(Clock& clock, Duration patience) {
    const Duration now = clock.elapsed();
    return {clock, patience > Duration::max() - now ? Duration::max() : now + patience};
  }
  // Returns true if the request should be sent again, after the delay.
  Task<bool> after(Error error) {
    if (!facts(error.code).retryable || clock.elapsed() >= deadline) co_return false;
    co_await clock.wait(pause);
    pause = std::min(pause * 2, kRetryDelayMax);
    co_return true;
  }
};

class Call {
 public:
  Call(ClaimStore& claims, Clock& clock, Random& random, ClaimRequest request, SideEffect& effect,
       RunOnceSettings settings)
      : claims_(claims),
        clock_(clock),
        random_(random),
        request_(std::move(request)),
        effect_(effect),
        settings_(settings),
        started_at_(clock.elapsed()) {
    if (request_.claim.is_nil()) name_claim();
  }

  Task<Result<RunOnceReply>> run() {
    for (;;) {
      Result<ClaimReply> reply = co_await send_claim();
      if (!reply) co_return std::unexpected(reply.error());
      std::optional<Result<RunOnceReply>> answer;
      if (auto* won = std::get_if<Won>(&*reply)) {
        answer = co_await run_attempt(std::move(*won));
      } else {
        answer = co_await answer_refusal(std::move(*reply));
      }
      if (answer) co_return std::move(*answer);
    }
  }

 private:
  void name_claim() {
    request_.claim = draw_claim_id(clock_, random_);
    claimed_at_ = std::nullopt;
  }

  // Sends the claim until it gets a reply. All sends have one claim id, so a claim that has won gets its run back.
  Task<Result<ClaimReply>> send_claim() {
    RetryBackoff again = RetryBackoff::within(clock_, settings_.patience);
    if (!claimed_at_) claimed_at_ = clock_.elapsed();
    for (;;) {
      Result<ClaimReply> reply = co_await claim(claims_, request_);
      if (reply) co_return reply;
      if (reply.error().code == Code::STORE_FULL && !settings_.wait_for_room) co_return reply;
      const bool more = co_await again.after(reply.error());
      if (!more) co_return reply;
      if (LK_SEEDED(lost_reply_taken_as_failure)) request_.claim = draw_claim_id(clock_, random_);
    }
  }

  // For a claim that did not win. None: claim again. The claim id does not change, because a delayed copy of this claim
  // may still win for this call.
  Task<std::optional<Result<RunOnceReply>>> answer_refusal(ClaimReply reply) {
    const auto pause = pause_after(reply);
    if (!pause) co_return as_answer(std::move(reply));
    co_await clock_.wait(*pause);
    co_return std::nullopt;
  }

  std::optional<Duration> pause_after(const ClaimReply& reply) {
    const Duration waited = clock_.elapsed() - started_at_;
    const auto* busy = std::get_if<Busy>(&reply);
    const auto* not_due = std::get_if<NotDue>(&reply);
    const bool own_retry = not_due && attempts_ > 0 && settings_.retry;
    if (!busy && !not_due) return std::nullopt;
    if (busy && busy->code == Code::MOVE_REFUSED) return std::nullopt;  // only an operator can change this
    if (!own_retry && (!settings_.wait || waited >= settings_.wait_max)) return std::nullopt;
    const Duration retry_after = busy ? busy->retry_after : not_due->retry_after;
    const Duration cap = own_retry ? retry_after : std::min(settings_.poll_max, settings_.wait_max - waited);
    return std::max(Duration{1}, std::min(retry_after, cap));
  }

  static Result<RunOnceReply> as_answer(ClaimReply reply) {
    return std::visit(
        []<class T>(T& one) -> Result<RunOnceReply> {
          if constexpr (std::is_same_v<T, Won>) {
            return fail(Code::INTERNAL, "a claim that won was treated as refused");
          } else {
            return RunOnceReply{std::move(one)};
          }
        },
        reply);
  }

  // One attempt: effect, then settle. None: another attempt follows.
  Task<std::optional<Result<RunOnceReply>>> run_attempt(Won won) {
    const Duration from = LK_SEEDED(lease_measured_from_reply) ? clock_.elapsed() : *claimed_at_;
    Heartbeat heartbeat(claims_, clock_, won, request_.lease, from + request_.lease);
    // The reply took long: confirm the lease by a heartbeat before the effect starts. Without a lease, claim again.
    const bool late = clock_.elapsed() - from >= request_.lease / 3;
    if (late) co_await heartbeat.beat();
    if (!heartbeat.is_good()) co_return co_await claim_again(heartbeat.trouble());
    lease_check_.reset();
    // This claim id is used now: the next attempt needs a new one.
    attempts_ += 1;
    name_claim();
    EffectResult ended = EffectInterrupted{};
    if (!heartbeat.cancel_requested()) ended = co_await run_effect(won, heartbeat);
    co_return co_await settle_attempt(won, std::move(ended), heartbeat.cancel_requested());
  }

  // For a lease that could not be confirmed. None: claim again. If the store returned an error, this waits for the
  // retry delay first, and ends with that error after settings.patience.
  Task<std::optional<Result<RunOnceReply>>> claim_again(std::optional<Error> trouble) {
    if (!trouble) co_return std::nullopt;
    if (!lease_check_) lease_check_.emplace(RetryBackoff::within(clock_, settings_.patience));
    const bool more = co_await lease_check_->after(*trouble);
    if (more) co_return std::nullopt;
    co_return std::unexpected(*std::move(trouble));
  }

  Task<EffectResult> run_effect(const Won& won, Heartbeat& heartbeat) {
    using namespace asio::experimental::awaitable_operators;
    EffectResult ended = EffectInterrupted{};
    // The heartbeat never ends by itself: the end of the effect cancels it.
    co_await (run_guarded(won, ended) || heartbeat.run(effect_));
    co_return ended;
  }

  Task<void> run_guarded(const Won& won, EffectResult& ended) {
    try {
      ended = co_await effect_.run(won);
    } catch (const boost::system::system_error& error) {
      if (error.code() == asio::error::operation_aborted) throw;
      ended = EffectFailed{.message = error.what(), .code = "EXCEPTION", .outcome_unknown = true};
    } catch (const std::exception& error) {
      ended = EffectFailed{.message = error.what(), .code = "EXCEPTION", .outcome_unknown = true};
    }
  }

  Task<std::optional<Result<RunOnceReply>>> settle_attempt(const Won& won, EffectResult ended, bool cancelled) {
    const SettleRequest request{won.run.head->tenant, won.run.id(), won.fence, as_ending(std::move(ended))};
    RetryBackoff again = RetryBackoff::within(clock_, settings_.settle_patience);
    for (;;) {
      Result<std::vector<SettleReply>> replies = co_await settle(claims_, std::vector{request});
      if (!replies) {
        const bool more = co_await again.after(replies.error());
        if (more) continue;
        co_return std::unexpected(replies.error());
      }
      if (const auto* error = std::get_if<Error>(&replies->front())) {
        if (error->code == Code::LEASE_LOST || error->code == Code::NOT_FOUND || error->code == Code::ALREADY_SETTLED)
          co_return RunOnceReply{LostLease{won.run.id(), error->code, error->detail}};
        co_return std::unexpected(*error);
      }
      auto& settled = std::get<Settled>(replies->front());
      if (is_own_retry(settled.run) && !cancelled) co_return co_await wait_until_due(std::move(settled));
      co_return RunOnceReply{Ran{std::move(settled.run), settled.dead_letter}};
    }
  }

  bool is_own_retry(const Run& run) const {
    const auto* queued = run.as<Queued>();
    return settings_.retry && queued && run.origin == Origin::claimed &&
           (queued->by == QueuedBy::failed_attempt ||
            (settings_.retry_unknown && queued->by == QueuedBy::doubtful_attempt));
  }

  // Waits for the delay of the run's policy, because the store's clock may differ from this one. If the wait is too
  // short, the next claim gets NotDue.
  Task<std::optional<Result<RunOnceReply>>> wait_until_due(Settled settled) {
    const RetryPolicy& policy = settled.run.head->retry;
    co_await clock_.wait(policy.delay_after(std::max(1u, settled.run.failures), no_jitter));
    co_return std::nullopt;
  }

  static Ending as_ending(EffectResult ended) {
    if (auto* done = std::get_if<EffectDone>(&ended))
      return Complete{std::move(done->result), std::move(done->follow_ups)};
    if (auto* failed = std::get_if<EffectFailed>(&ended)) {
      // A message over the limit would be rejected, and the failure would not be recorded.
      failed->message.resize(std::min(failed->message.size(), kBodyBytesMax));
      return Fail{std::move(failed->message), std::move(failed->code), failed->retryable, failed->outcome_unknown,
                  failed->retry_after};
    }
    return Release{};
  }

  ClaimStore& claims_;
  Clock& clock_;
  Random& random_;
  ClaimRequest request_;
  SideEffect& effect_;
  RunOnceSettings settings_;
  Duration started_at_;
  // The time at which this claim id was first sent. Its lease cannot have begun earlier.
  std::optional<Duration> claimed_at_;
  std::uint32_t attempts_ = 0;
  std::optional<RetryBackoff> lease_check_;  // set while leases cannot be confirmed
};

}  // namespace

Task<Result<RunOnceReply>> run_once(ClaimStore& claims, Clock& clock, Random& random, ClaimRequest request,
                                    SideEffect& effect, RunOnceSettings settings) {
  Call call(claims, clock, random, std::move(request), effect, settings);
  co_return co_await call.run();
}

}  // namespace latchkey
