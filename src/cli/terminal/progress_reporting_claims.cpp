#include "cli/terminal/progress_reporting_claims.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace latchkey {
namespace {

// Between two words about the same trouble: doubled each time.
constexpr Duration kFirstPause = std::chrono::seconds{15};
// Who waits for less does not wonder.
constexpr Duration kShownAfter = std::chrono::seconds{1};
constexpr Duration kPauseMax = std::chrono::minutes{2};

std::string describe(const Ending& ending) {
  if (std::holds_alternative<Complete>(ending)) return "the command succeeded";
  if (const auto* failed = std::get_if<Fail>(&ending)) return "the command failed (" + failed->message + ")";
  return "the command was stopped";
}

std::string in_seconds(Duration span) { return format_duration(std::chrono::floor<std::chrono::seconds>(span)); }

bool is_asked_again(const Error& error) { return facts(error.code).retryable || error.code == Code::REPLY_LOST; }

}  // namespace

void ProgressReportingClaims::claim(ClaimRequest request, Done<ClaimReply> done) {
  claims_.claim(std::move(request), [this, done = std::move(done)](Result<ClaimReply> reply) mutable {
    if (reply) tell(*reply);
    done(std::move(reply));
  });
}

void ProgressReportingClaims::extend(std::vector<ExtendRequest> requests, Done<std::vector<ExtendReply>> done) {
  claims_.extend(std::move(requests), [this, done = std::move(done)](Result<std::vector<ExtendReply>> replies) mutable {
    if (replies && won_)
      if (const auto* extended = std::get_if<Extended>(&replies->front())) won_->lease_until = extended->lease_until;
    done(std::move(replies));
  });
}

void ProgressReportingClaims::settle(std::vector<SettleRequest> requests, Done<std::vector<SettleReply>> done) {
  settling_ = true;
  ending_ = describe(requests.front().ending);
  claims_.settle(std::move(requests), [this, done = std::move(done)](Result<std::vector<SettleReply>> replies) mutable {
    if (!replies) {
      tell_unsettled(replies.error());
    } else {
      tell_settled();
      for (const SettleReply& reply : *replies) tell(reply);
    }
    done(std::move(replies));
  });
}

void ProgressReportingClaims::tell(const ClaimReply& reply) {
  if (const auto* won = std::get_if<Won>(&reply)) {
    won_ = *won;
    between_tries_.reset();
  }
  const auto* busy = std::get_if<Busy>(&reply);
  const auto* not_due = std::get_if<NotDue>(&reply);
  if (!settings_.waits || (!busy && !not_due)) return report_.status.clear();
  tell_waiting((busy ? busy->run : not_due->run).id());
}

void ProgressReportingClaims::tell_waiting(RunId id) {
  const Duration now = report_.clock.elapsed();
  if (!waiting_since_) {
    waiting_since_ = now;
    return report_.note(fmt::format("waiting for run {}", to_string(id)));
  }
  if (now - *waiting_since_ >= kShownAfter) report_.show_waiting(id, now - *waiting_since_);
}

void ProgressReportingClaims::tell(const SettleReply& reply) {
  const auto* settled = std::get_if<Settled>(&reply);
  const auto* queued = settled ? settled->run.as<Queued>() : nullptr;
  if (!queued || queued->by != QueuedBy::failed_try) return;
  const Run& run = settled->run;
  between_tries_ = run;
  report_.note(fmt::format("attempt {} of {} failed: {}; trying again in {}", run.attempt, run.attempts_max,
                           run.last_error,
                           format_duration(run.head->retry.delay_after(std::max(1u, run.failures), no_jitter))));
}

void ProgressReportingClaims::tell_unsettled(const Error& error) {
  trouble_ = error;
  if (!is_asked_again(error)) return;
  const Duration now = report_.clock.elapsed();
  if (!unsettled_) {
    unsettled_at_ = now;
    word_pause_ = kFirstPause;
    next_word_at_ = now + word_pause_;
    unsettled_ = true;
    report_.refuse(to_string(error));
    report_.refuse(fmt::format("{}, but that is not kept yet; trying again until {} ({}); Ctrl-C gives it up", ending_,
                               format_rfc3339(report_.clock.now() + settings_.settle_patience),
                               format_duration(settings_.settle_patience)));
    return;
  }
  if (now < next_word_at_) return;
  word_pause_ = std::min(word_pause_ * 2, kPauseMax);
  next_word_at_ = now + word_pause_;
  report_.refuse(fmt::format("still not kept after {}: {}", in_seconds(now - unsettled_at_), to_string(error)));
}

void ProgressReportingClaims::tell_settled() {
  settling_ = false;
  if (unsettled_.exchange(false))
    report_.note(fmt::format("kept after {}", in_seconds(report_.clock.elapsed() - unsettled_at_)));
}

void ProgressReportingClaims::tell_given_up() const {
  if (!settling_ || !won_) return;
  const bool unknown = trouble_.code == Code::WAIT_CANCELLED || trouble_.code == Code::REPLY_LOST;
  const std::string id = to_string(won_->run.id());
  report_.refuse(fmt::format("{}, but {}: run {} {}", ending_,
                             unknown ? "it is not known whether that is kept" : "that is NOT kept", id,
                             unknown ? "shows it" : "counts as running until its lease ends"));
  report_.refuse(fmt::format("when the lease is over, {}, {}", format_rfc3339(won_->lease_until),
                             won_->run.head->on_doubt == OnDoubt::hold
                                 ? "it is in doubt and a person decides (latchkey runs resolve " + id + ")"
                                 : "the next call runs the command again"));
}

}  // namespace latchkey
