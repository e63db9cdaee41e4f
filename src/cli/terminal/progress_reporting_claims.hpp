// ProgressReportingClaims: a ClaimStore that forwards every call to another one and reports progress on stderr: the run
// that the caller waits for, the delay before a retry, and an outcome that is not stored yet. It also remembers the
// state that an interrupted call must report or release: the current attempt, whether its outcome is stored, and the
// run in its retry delay.
//
// Any thread may call is_settling() and is_unsettled(); the other getters only between two calls of the verbs.
#pragma once

#include <atomic>
#include <optional>
#include <string>

#include "cli/terminal/run_report.hpp"
#include "store/store.hpp"

namespace latchkey {

struct ProgressSettings {
  // The caller waits for the outcome of a busy key.
  bool waits = false;
  // For how long the caller retries a settle; only reported.
  Duration settle_patience{};
};

class ProgressReportingClaims final : public ClaimStore {
 public:
  ProgressReportingClaims(ClaimStore& claims, const RunReport& report, ProgressSettings settings)
      : claims_(claims), report_(report), settings_(settings) {}

  void claim(ClaimRequest request, Done<ClaimReply> done) override;
  void extend(std::vector<ExtendRequest> requests, Done<std::vector<ExtendReply>> done) override;
  void settle(std::vector<SettleRequest> requests, Done<std::vector<SettleReply>> done) override;

  // A settle has started and was not accepted yet.
  bool is_settling() const { return settling_; }
  // It failed at least once and is retried.
  bool is_unsettled() const { return unsettled_; }
  // Reports the outcome of which the settle is abandoned, and what happens to its run.
  void report_abandoned() const;
  // The run, during its retry delay.
  const std::optional<Run>& run_in_retry_delay() const { return run_in_retry_delay_; }

 private:
  void report_claim(const ClaimReply& reply);
  void report_settle(const SettleReply& reply);
  void report_waiting(RunId id);
  void report_unsettled(const Error& error);
  void report_settled();

  ClaimStore& claims_;
  const RunReport& report_;
  ProgressSettings settings_;
  std::optional<Duration> waiting_since_;
  std::optional<Won> won_;
  std::optional<Run> run_in_retry_delay_;
  std::string ending_;    // "the command succeeded"
  Error settle_error_{};  // the latest
  Duration unsettled_at_{};
  Duration next_report_at_{};
  Duration report_interval_{};
  std::atomic<bool> settling_ = false;
  std::atomic<bool> unsettled_ = false;
};

}  // namespace latchkey
