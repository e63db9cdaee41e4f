// Dead letters: groups of permanently failed runs, and the operator actions on them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "model/requests.hpp"

namespace latchkey {

// An entry is a group of failures. Each tenant and function has at most one entry that is not acknowledged.
struct DeadLetter {
  Uuid id;
  std::string tenant;
  std::string function;
  std::string code;  // of the latest failure
  std::string reason;
  RunId latest_run;
  std::uint64_t count = 0;
  Instant opened_at;
  Instant updated_at;
  std::optional<Instant> acknowledged_at;
  std::string acknowledged_by;
};
// An operator action on a member. A member has at most one of each kind; a later one does not replace it.
enum class StepKind : std::uint8_t { retried, completed, failed };
std::string_view to_string(StepKind kind);
struct MemberStep {
  StepKind kind = StepKind::retried;
  std::string by;
  Instant at;
  std::string note;
};
// One failed run (one generation of it) in an entry.
struct DeadLetterMember {
  RunId run;
  std::uint32_t generation = 0;
  std::string key;
  std::string code;
  std::string reason;
  std::uint32_t attempts = 0;
  Effect effect = Effect::none;
  Instant at;
  std::vector<MemberStep> steps;  // in the order of StepKind
};

// The order of the members of an entry: by the counter in the run's id, then by generation.
struct MemberPosition {
  std::uint64_t counter = 0;
  std::uint32_t generation = 0;
  auto operator<=>(const MemberPosition&) const = default;
};

MemberPosition position_of(const DeadLetterMember& member);

// Retries or resolves members of an entry: RetryByHand, ResolveCompleted or ResolveFailed.
struct DeadLetterActionRequest {
  std::optional<std::string> tenant;  // none: any
  Uuid dead_letter;
  std::vector<RunId> runs;  // empty: all, a slice per call
  Move move;
  std::string by;
  std::string note;
  std::string cursor;  // `next` of the previous slice
  std::uint32_t limit = 200;
};
struct MemberActionReply {
  RunId run;
  bool changed = false;  // false and not refused: the run was in that state already
  // MOVE_REFUSED, also for a run that was opened again since; NOT_FOUND for a run that is no member or was purged.
  std::optional<Error> refused;
};
struct DeadLetterActionReply {
  std::vector<MemberActionReply> members;
  std::string next;  // empty at the end
};

struct DeadLetterQuery {
  std::optional<std::string> tenant;
  std::string function;
  bool with_acknowledged = false;
  std::string cursor;
  std::uint32_t limit = 50;
};
struct DeadLetterPage {
  std::vector<DeadLetter> entries;  // newest first
  std::string next;
};

}  // namespace latchkey
