// Records: the cold things beside runs. Off the hot path; every call is one short transaction and blocks its caller.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "model/requests.hpp"

namespace latchkey {

// A dead letter's entry is a group: one unacknowledged entry per (tenant, function).
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
// What a person did about a member. One of a kind: the first stands.
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

// Where a member stands in its entry: by the run's counter, then by generation.
struct MemberPlace {
  std::uint64_t counter = 0;
  std::uint32_t generation = 0;
  auto operator<=>(const MemberPlace&) const = default;
};

MemberPlace place_of(const DeadLetterMember& member);

// What a person wants done about an entry's members: RetryByHand, ResolveCompleted or ResolveFailed.
struct LetterMove {
  std::optional<std::string> tenant;  // none: any
  Uuid letter;
  std::vector<RunId> runs;  // empty: all, a slice per call
  Move move;
  std::string by;
  std::string note;
  std::string cursor;  // `next` of the slice before
  std::uint32_t limit = 200;
};
struct MemberMoved {
  RunId run;
  bool changed = false;          // false and not refused: it stands so already
  std::optional<Error> refused;  // MOVE_REFUSED, also of a run opened again since; NOT_FOUND: no member, or gone
};
struct LetterMoved {
  std::vector<MemberMoved> members;
  std::string next;  // empty: that was all
};

struct DeadLetterQuery {
  std::optional<std::string> tenant;
  std::string function;
  bool with_acknowledged = false;
  std::string cursor;
  std::uint32_t limit = 50;
};
struct DeadLetterPage {
  std::vector<DeadLetter> entries;  // the one opened last first
  std::string next;
};

enum class Role : std::uint8_t { viewer, service, org_admin, admin };
std::string_view to_string(Role role);
std::optional<Role> parse_role(std::string_view text);

// A token as it is kept: the secret itself never is.
struct TokenRecord {
  std::string id;  // public part, 16 characters
  Digest secret_hash{};
  std::string name;  // for people
  Role role = Role::viewer;
  std::vector<std::string> tenants;  // empty: all (admin only)
  Instant created_at;
  std::optional<Instant> expires_at;
  std::optional<Instant> revoked_at;
};

class Records {
 public:
  virtual ~Records() = default;
  virtual Result<DeadLetterPage> list_dead_letters(const DeadLetterQuery& query) = 0;
  virtual Result<std::optional<DeadLetter>> find_dead_letter(const std::optional<std::string>& tenant, Uuid id) = 0;
  // The members behind `after`, in the order of their place. Fewer than `limit`: those are the last.
  virtual Result<std::vector<DeadLetterMember>> list_members(Uuid dead_letter, std::uint32_t limit,
                                                             MemberPlace after = {}) = 0;
  // Idempotent: the first acknowledgement stands. None when there is no such entry.
  virtual Result<std::optional<DeadLetter>> acknowledge(const std::optional<std::string>& tenant, Uuid id,
                                                        const std::string& actor) = 0;
  // Retries or resolves members, each on its own, all of the slice in one transaction with who and when. The same again
  // changes nothing. None when there is no such entry.
  virtual Result<std::optional<LetterMoved>> move_dead_letter(const LetterMove& wish) = 0;

  virtual Result<std::monostate> add_token(const TokenRecord& token) = 0;
  virtual Result<std::vector<TokenRecord>> list_tokens() = 0;
  // False when there is no such token. Revoking twice keeps the first time.
  virtual Result<bool> revoke_token(const std::string& id) = 0;
};

}  // namespace latchkey
