// ProgressReportingClaims: claims that say on stderr what whoever waits at the terminal wants to know: who is waited
// for, when a failed try comes again, and that an outcome cannot be kept yet. Also remembers what a call that is left
// early must know: the try in hand, whether its outcome is kept, and whether the run waits for its next try.
//
// is_settling() and is_unsettled() from any thread; the rest between two calls.
#pragma once

#include <atomic>
#include <optional>
#include <string>

#include "cli/terminal/run_report.hpp"
#include "store/store.hpp"

namespace latchkey {

struct TellingSettings {
  // Whether busy keys are waited for.
  bool waits = false;
  // How long an outcome is tried to be kept; only said.
  Duration settle_patience{};
};

class ProgressReportingClaims final : public ClaimStore {
 public:
  ProgressReportingClaims(ClaimStore& claims, const RunReport& report, TellingSettings settings)
      : claims_(claims), report_(report), settings_(settings) {}

  void claim(ClaimRequest request, Done<ClaimReply> done) override;
  void extend(std::vector<ExtendRequest> requests, Done<std::vector<ExtendReply>> done) override;
  void settle(std::vector<SettleRequest> requests, Done<std::vector<SettleReply>> done) override;

  // An outcome is on its way.
  bool is_settling() const { return settling_; }
  // It was refused at least once and is tried again.
  bool is_unsettled() const { return unsettled_; }
  // Says what is and what is not kept of an outcome that is given up.
  void tell_given_up() const;
  // The run, while it waits for its next try.
  const std::optional<Run>& between_tries() const { return between_tries_; }

 private:
  void tell(const ClaimReply& reply);
  void tell(const SettleReply& reply);
  void tell_waiting(RunId id);
  void tell_unsettled(const Error& error);
  void tell_settled();

  ClaimStore& claims_;
  const RunReport& report_;
  TellingSettings settings_;
  std::optional<Duration> waiting_since_;
  std::optional<Won> won_;
  std::optional<Run> between_tries_;
  std::string ending_;  // "the command succeeded"
  Error trouble_{};     // the latest reason why that is not kept
  Duration unsettled_at_{};
  Duration next_word_at_{};
  Duration word_pause_{};
  std::atomic<bool> settling_ = false;
  std::atomic<bool> unsettled_ = false;
};

}  // namespace latchkey
