// The replies to repeats, as data, for the tests of decide_*(), the conformance suite and docs/repeats.md.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/error.hpp"

namespace latchkey {

// The state of the key's latest run when a repeat arrives.
enum class KeyState : std::uint8_t {
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
  KeyState state;
  std::string_view text;  // the state in docs/repeats.md
  ClaimAnswer claim;
  int status;             // HTTP status of the reply to a claim
  std::string_view code;  // its error code, if it is a problem
  bool retry_after;       // whether it has a Retry-After header
  EnqueueAnswer enqueue;
  bool fingerprint_checked;  // another fingerprint under `once` is 422 KEY_REUSED
};

inline constexpr std::array kRepeatTable{
    RepeatRow{KeyState::absent, "none", ClaimAnswer::new_run, 201, "", false, EnqueueAnswer::new_run, false},
    RepeatRow{KeyState::cancelled, "cancelled", ClaimAnswer::new_run, 201, "", false, EnqueueAnswer::new_run, false},
    RepeatRow{KeyState::window_over, "`once`, completed, past its window", ClaimAnswer::new_run, 201, "", false,
              EnqueueAnswer::new_run, false},
    RepeatRow{KeyState::while_running_completed, "`while-running`, completed", ClaimAnswer::new_run, 201, "", false,
              EnqueueAnswer::new_run, false},
    RepeatRow{KeyState::while_running_failed, "`while-running`, failed", ClaimAnswer::new_run, 201, "", false,
              EnqueueAnswer::new_run, false},
    RepeatRow{KeyState::queued_job, "queued, was enqueued", ClaimAnswer::busy, 409, "ALREADY_QUEUED", true,
              EnqueueAnswer::duplicate, true},
    RepeatRow{KeyState::queued_claim_due, "queued, was claimed, due", ClaimAnswer::same_run, 201, "", false,
              EnqueueAnswer::duplicate, true},
    RepeatRow{KeyState::queued_claim_not_due, "queued, was claimed, not due", ClaimAnswer::not_due, 409, "NOT_DUE",
              true, EnqueueAnswer::duplicate, true},
    RepeatRow{KeyState::running, "running, lease good", ClaimAnswer::busy, 409, "ALREADY_RUNNING", true,
              EnqueueAnswer::duplicate, true},
    RepeatRow{KeyState::lapsed_claim_rerun, "running, lease over, `rerun`, was claimed", ClaimAnswer::same_run, 201, "",
              false, EnqueueAnswer::duplicate, true},
    RepeatRow{KeyState::lapsed_job_rerun, "running, lease over, `rerun`, was enqueued", ClaimAnswer::busy, 409,
              "ALREADY_QUEUED", true, EnqueueAnswer::duplicate, true},
    RepeatRow{KeyState::lapsed_hold, "running, lease over, `hold`", ClaimAnswer::in_doubt, 409, "OUTCOME_UNKNOWN",
              false, EnqueueAnswer::duplicate, true},
    RepeatRow{KeyState::in_doubt, "in_doubt", ClaimAnswer::in_doubt, 409, "OUTCOME_UNKNOWN", false,
              EnqueueAnswer::duplicate, true},
    RepeatRow{KeyState::failed_unknown_hold, "failed with effect unknown under `hold`", ClaimAnswer::in_doubt, 409,
              "OUTCOME_UNKNOWN", false, EnqueueAnswer::duplicate, true},
    RepeatRow{KeyState::once_completed, "`once`, completed, in its window", ClaimAnswer::replay, 200, "", false,
              EnqueueAnswer::duplicate, true},
    RepeatRow{KeyState::once_failed, "`once`, failed otherwise", ClaimAnswer::new_generation, 201, "", false,
              EnqueueAnswer::new_generation, true},
};

}  // namespace latchkey
