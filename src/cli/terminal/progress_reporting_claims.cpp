#include "cli/terminal/progress_reporting_claims.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace latchkey {
namespace {

// The interval between two reports of the same failure doubles each time.
constexpr Duration kFirstInterval = std::chrono::seconds{15};
constexpr Duration kIntervalMax = std::chrono::minutes{2};
// A shorter wait is not shown.
constexpr Duration kShownAfter = std::chrono::seconds{1};

std::string describe(const Ending& ending) {
  if (std::holds_alternative<Complete>(ending)) return "the command succeeded";
  if (const auto* failed = std::get_if<Fail>(&ending)) return "the command failed (" + failed->message + ")";
  return "the command was stopped";
}

std::string in_seconds(Duration span) { return format_duration(std::chrono::floor<std::chrono::seconds>(span)); }

bool is_retried(const Error& error) { return facts(error.code).retryable || error.code == Code::REPLY_LOST; }

}  // namespace

void ProgressReportingClaims::claim(ClaimRequest request, Done<ClaimReply> done) {
  claims_.claim(std::move(request), [this, done = std::move(done)](Result<ClaimReply> reply) mutable {
    if (reply) report_claim(*reply);
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
      report_unsettled(replies.error());
    } else {
      report_settled();
      for (const SettleReply& reply : *replies) report_settle(reply);
    }
    done(std::move(replies));
  });
}

void ProgressReportingClaims::report_claim(const ClaimReply& reply) {
  if (const auto* won = std::get_if<Won>(&reply)) {
    won_ = *won;
    run_in_retry_delay_.reset();
  }
  const auto* busy = std::get_if<Busy>(&reply);
  const auto* not_due = std::get_if<NotDue>(&reply);
  if (!settings_.waits || (!busy && !not_due)) return report_.status.clear();
  report_waiting((busy ? busy->run : not_due->run).id());
}

void ProgressReportingClaims::report_waiting(RunId id) {
  const Duration now = report_.clock.elapsed();
  if (!waiting_since_) {
    waiting_since_ = now;
    return report_.note(fmt::format("waiting for run {}", to_string(id)));
  }
  if (now - *waiting_since_ >= kShownAfter) report_.show_waiting(id, now - *waiting_since_);
}

void ProgressReportingClaims::report_settle(const SettleReply& reply) {
  const auto* settled = std::get_if<Settled>(&reply);
  const auto* queued = settled ? settled->run.as<Queued>() : nullptr;
  if (!queued || queued->by != QueuedBy::failed_attempt) return;
  const Run& run = settled->run;
  run_in_retry_delay_ = run;
  report_.note(fmt::format("attempt {} of {} failed: {}; trying again in {}", run.attempt, run.attempts_max,
                           run.last_error,
                           format_duration(run.head->retry.delay_after(std::max(1u, run.failures), no_jitter))));
}

void ProgressReportingClaims::report_unsettled(const Error& error) {
  settle_error_ = error;
  if (!is_retried(error)) return;
  const Duration now = report_.clock.elapsed();
  if (!unsettled_) {
    unsettled_at_ = now;
    report_interval_ = kFirstInterval;
    next_report_at_ = now + report_interval_;
    unsettled_ = true;
    report_.warn(to_string(error));
    report_.warn(fmt::format("{}, but its outcome is not stored yet; retrying until {} ({}); Ctrl-C ends the retries",
                             ending_, format_rfc3339(report_.clock.now() + settings_.settle_patience),
                             format_duration(settings_.settle_patience)));
    return;
  }
  if (now < next_report_at_) return;
  report_interval_ = std::min(report_interval_ * 2, kIntervalMax);
  next_report_at_ = now + report_interval_;
  report_.warn(fmt::format("still not stored after {}: {}", in_seconds(now - unsettled_at_), to_string(error)));
}

void ProgressReportingClaims::report_settled() {
  settling_ = false;
  if (unsettled_.exchange(false))
    report_.note(fmt::format("stored after {}", in_seconds(report_.clock.elapsed() - unsettled_at_)));
}

void ProgressReportingClaims::report_abandoned() const {
  if (!settling_ || !won_) return;
  const bool unknown = settle_error_.code == Code::WAIT_CANCELLED || settle_error_.code == Code::REPLY_LOST;
  const std::string id = to_string(won_->run.id());
  report_.warn(fmt::format("{}, but {}: run {} {}", ending_,
                           unknown ? "it is not known whether its outcome is stored" : "its outcome is NOT stored", id,
                           unknown ? "shows it" : "counts as running until its lease expires"));
  report_.warn(fmt::format("when the lease expires, {}, {}", format_rfc3339(won_->lease_until),
                           won_->run.head->on_doubt == OnDoubt::hold
                               ? "it is in doubt and an operator decides (latchkey runs resolve " + id + ")"
                               : "the next call runs the command again"));
}

}  // namespace latchkey
