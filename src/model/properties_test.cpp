// Random sequences of decisions on one key. The invariants are checked after each decision.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "model/decide.hpp"
#include "support/sample_runs.hpp"

namespace latchkey {
namespace {

using namespace std::chrono_literals;

RunHead draw_head() {
  RunHead head = a_head();
  head.guard = *rc::gen::element(Guard::once, Guard::while_running);
  if (head.guard != Guard::once) head.fingerprint.reset();
  head.on_doubt = *rc::gen::element(OnDoubt::rerun, OnDoubt::hold);
  head.retry.retries = *rc::gen::inRange<std::uint32_t>(0, 3);
  head.retry.total = *rc::gen::element<Duration>(Duration::max(), 2min, 48h);
  head.window = *rc::gen::element<Duration>(1min, 24h);
  return head;
}

Ending draw_ending() {
  return *rc::gen::element<Ending>(Complete{"r", {}}, Fail{.message = "m"}, Fail{.message = "m", .retryable = false},
                                   Fail{.message = "m", .outcome_unknown = true}, Release{}, Snooze{30s});
}

Move draw_move() {
  return *rc::gen::element<Move>(CancelByHand{}, RetryByHand{}, RetryByHand{true}, ResolveCompleted{"r"},
                                 ResolveFailed{"n"}, ResolveRerun{});
}

// A key and its runs, as a store would contain them.
class Key {
 public:
  void step() {
    now_ += *rc::gen::element<Duration>(0ms, 1s, 10s, 60s, 1h, 25h);
    switch (*rc::gen::inRange(0, 8)) {
      case 0:
        return claim();
      case 1:
        return enqueue();
      case 2:
        return write(decide_take(*run_, TakeRequest{}, Fence{fence_ + 1}, now_), true);
      case 3:
        return write(
            decide_extend(*run_,
                          {{}, run_->id(), some_fence(), *rc::gen::element<std::optional<Duration>>(90s, std::nullopt)},
                          now_)
                .next);
      case 4:
      case 5:
        return write(decide_settle(*run_, {{}, run_->id(), some_fence(), draw_ending()}, no_jitter, now_).next);
      case 6:
        return write(decide_move(*run_, draw_move(), id_of(77), now_).next);
      default:
        return sweep();
    }
  }

 private:
  Fence some_fence() const { return *rc::gen::inRange(0, 4) == 0 ? Fence{1} : run_->fence; }

  void claim() {
    ClaimRequest request = a_claim();
    request.guard = run_->head->guard;
    request.fingerprint = *rc::gen::inRange(0, 5) == 0 ? kOther : kSame;
    request.retry.retries = *rc::gen::inRange<std::uint32_t>(0, 3);
    request.lease = *rc::gen::element<Duration>(1s, 60s);
    auto decision = decide_claim(run_, request, Fence{fence_ + 1}, now_);
    if (auto* refuse = std::get_if<Refuse>(&decision)) return write(refuse->next);
    if (auto* again = std::get_if<StartAgain>(&decision)) {
      write(again->ended);
      if (again->next.generation > run_->generation) RC_ASSERT(again->next.attempts_max == request.retry.retries + 1);
      return write(again->next, true);
    }
    write(std::get<StartNew>(decision).ended);
    RC_ASSERT(run_->is_settled());  // at most one open run under a key
    RunHead head = *run_->head;
    head.id = id_of(++ids_);
    run_ = start_claimed(std::make_shared<RunHead>(head), request, Fence{++fence_}, now_);
  }

  void enqueue() {
    EnqueueRequest request = a_job();
    auto decision = decide_enqueue(run_, request, now_);
    if (auto* reopened = std::get_if<Reopen>(&decision)) return write(reopened->next);
    if (std::holds_alternative<UseExisting>(decision)) return;
    RC_ASSERT(run_->is_settled());
    RunHead head = *run_->head;
    head.id = id_of(++ids_);
    run_ = start_queued(std::make_shared<RunHead>(head), now_, 0);
  }

  void sweep() {
    const auto deadline = next_deadline(*run_);
    const auto next = decide_deadline(*run_, now_);
    RC_ASSERT(next.has_value() == (deadline && now_ >= *deadline));
    if (deadline) RC_ASSERT(!decide_deadline(*run_, *deadline - 1ms) && decide_deadline(*run_, *deadline));
    write(next);
  }

  void write(const std::optional<Run>& next, bool draws_fence = false) {
    if (!next) return;
    if (draws_fence) ++fence_;
    check(*run_, *next);
    if (draws_fence) RC_ASSERT(next->fence == Fence{fence_} && next->fence > run_->fence);
    run_ = next;
  }

  static void check(const Run& was, const Run& is) {
    RC_ASSERT(is.id() == was.id());
    RC_ASSERT(is.fence >= was.fence);
    RC_ASSERT(is.attempt <= is.attempts_max);
    RC_ASSERT(is.failures <= is.attempt);
    RC_ASSERT(is.attempts_total >= was.attempts_total);
    RC_ASSERT(is.attempts_total - was.attempts_total <= 1u);
    RC_ASSERT(is.generation == was.generation || (is.generation == was.generation + 1 && was.as<Failed>()));
    if (is.generation == was.generation) RC_ASSERT(is.attempt >= was.attempt);
    if (was.is_settled()) {
      RC_ASSERT(was.as<Failed>() != nullptr);
      RC_ASSERT(is.as<Cancelled>() || is.as<Completed>() || is.generation > was.generation);
    }
    if (is.as<Queued>()) RC_ASSERT(is.attempt < is.attempts_max);
    if (is.as<Running>() && !was.as<Running>()) RC_ASSERT(is.fence > was.fence);
    if (is.as<InDoubt>()) RC_ASSERT(is.head->on_doubt == OnDoubt::hold);
    RC_ASSERT((is.effect_key == is.id()) || is.effect_key == id_of(77));
  }

  Instant now_ = kNoon;
  std::uint64_t fence_ = 1;
  std::uint64_t ids_ = 1;
  std::optional<Run> run_ = start_claimed(std::make_shared<RunHead>(draw_head()), a_claim(), Fence{1}, kNoon);
};

RC_GTEST_PROP(Decisions, SatisfyTheirInvariants, ()) {
  Key key;
  const int steps = *rc::gen::inRange(1, 200);
  for (int i = 0; i < steps; ++i) key.step();
}

}  // namespace
}  // namespace latchkey
