// What a repeat gets, as data: read by the tests of decide_*(), by the conformance suite and by docs/repeats.md.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/error.hpp"

namespace latchkey {

// How the key's latest run stands when somebody asks again.
enum class Standing : std::uint8_t {
  absent,
  cancelled,
  window_over,
  while_running_completed,
  while_running_failed,
  queued_job,
  queued_claim_due,
  queued_claim_not_due,
  running,
  lapsed_claim_rerun,
  lapsed_job_rerun,
  lapsed_hold,
  in_doubt,
  failed_unknown_hold,
  once_completed,
  once_failed,
};

enum class ClaimAnswer : std::uint8_t { new_run, same_run, new_generation, replay, busy, not_due, in_doubt };
enum class EnqueueAnswer : std::uint8_t { new_run, new_generation, duplicate };

struct RepeatRow {
  Standing standing;
  std::string_view text;  // as the docs say it
  ClaimAnswer claim;
  int status;             // HTTP, of the claim
  std::string_view code;  // of the claim's problem, if it is one
  bool retry_after;       // whether the claim's answer carries it
  EnqueueAnswer enqueue;
  bool fingerprint_checked;  // another fingerprint under `once` is 422 KEY_REUSED
};

inline constexpr std::array kRepeatTable{
    RepeatRow{Standing::absent, "none", ClaimAnswer::new_run, 201, "", false, EnqueueAnswer::new_run, false},
    RepeatRow{Standing::cancelled, "cancelled", ClaimAnswer::new_run, 201, "", false, EnqueueAnswer::new_run, false},
    RepeatRow{Standing::window_over, "`once`, completed, past its window", ClaimAnswer::new_run, 201, "", false,
              EnqueueAnswer::new_run, false},
    RepeatRow{Standing::while_running_completed, "`while-running`, completed", ClaimAnswer::new_run, 201, "", false,
              EnqueueAnswer::new_run, false},
    RepeatRow{Standing::while_running_failed, "`while-running`, failed", ClaimAnswer::new_run, 201, "", false,
              EnqueueAnswer::new_run, false},
    RepeatRow{Standing::queued_job, "queued, was enqueued", ClaimAnswer::busy, 409, "ALREADY_QUEUED", true,
              EnqueueAnswer::duplicate, true},
    RepeatRow{Standing::queued_claim_due, "queued, was claimed, due", ClaimAnswer::same_run, 201, "", false,
              EnqueueAnswer::duplicate, true},
    RepeatRow{Standing::queued_claim_not_due, "queued, was claimed, not due", ClaimAnswer::not_due, 409, "NOT_DUE",
              true, EnqueueAnswer::duplicate, true},
    RepeatRow{Standing::running, "running, lease good", ClaimAnswer::busy, 409, "ALREADY_RUNNING", true,
              EnqueueAnswer::duplicate, true},
    RepeatRow{Standing::lapsed_claim_rerun, "running, lease over, `rerun`, was claimed", ClaimAnswer::same_run, 201, "",
              false, EnqueueAnswer::duplicate, true},
    RepeatRow{Standing::lapsed_job_rerun, "running, lease over, `rerun`, was enqueued", ClaimAnswer::busy, 409,
              "ALREADY_QUEUED", true, EnqueueAnswer::duplicate, true},
    RepeatRow{Standing::lapsed_hold, "running, lease over, `hold`", ClaimAnswer::in_doubt, 409, "OUTCOME_UNKNOWN",
              false, EnqueueAnswer::duplicate, true},
    RepeatRow{Standing::in_doubt, "in_doubt", ClaimAnswer::in_doubt, 409, "OUTCOME_UNKNOWN", false,
              EnqueueAnswer::duplicate, true},
    RepeatRow{Standing::failed_unknown_hold, "failed with effect unknown under `hold`", ClaimAnswer::in_doubt, 409,
              "OUTCOME_UNKNOWN", false, EnqueueAnswer::duplicate, true},
    RepeatRow{Standing::once_completed, "`once`, completed, in its window", ClaimAnswer::replay, 200, "", false,
              EnqueueAnswer::duplicate, true},
    RepeatRow{Standing::once_failed, "`once`, failed otherwise", ClaimAnswer::new_generation, 201, "", false,
              EnqueueAnswer::new_generation, true},
};

}  // namespace latchkey
