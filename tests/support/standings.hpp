// Runs in the state of each row of the repeat table, and requests for their keys. Pure functions.
#pragma once

#include <optional>
#include <ostream>
#include <string>
#include <string_view>

#include "model/decide.hpp"
#include "model/repeat_table.hpp"
#include "model/requests.hpp"

namespace latchkey {

inline constexpr Instant kNoon{Duration{1'770'379'200'000}};  // 2026-02-06T12:00:00Z
inline constexpr Fingerprint kSame{1};
inline constexpr Fingerprint kOther{2};
inline constexpr Fence kOldFence{7};
inline constexpr Fence kNewFence{8};

Digest hash_key(std::string_view tenant, std::string_view function, std::string_view key);
// A version-7 UUID. Different numbers give different UUIDs.
Uuid id_of(std::uint64_t number);

// Function "f", key "k", tenant "default", guard once, fingerprint kSame.
ClaimRequest a_claim(std::string key = "k", std::string tenant = "default");
EnqueueRequest a_job(std::string key = "k", std::string tenant = "default");
// The head that a store creates for a_claim(): once, rerun, three retries.
RunHead a_head();
// A run in the given state shortly before kNoon, after one attempt with kOldFence.
Run a_run(State state, RunHead head = a_head());
Run a_job_run(State state, RunHead head = a_head());

// The key's latest run for a row of the repeat table, at kNoon. None for Standing::absent.
std::optional<Run> make_run_in(Standing row);
// True if the row describes a `while-running` key; the others describe `once` keys.
bool is_lock(Standing standing);
std::string_view name(Standing standing);

// The HTTP form of a claim's reply.
struct WireAnswer {
  int status = 0;
  std::string code;
  bool retry_after = false;
  bool operator==(const WireAnswer&) const = default;
};
WireAnswer on_wire(const ClaimReply& reply);
// The repeat table's answer for this reply, if the key's latest run was `before`. None for a mismatch.
std::optional<ClaimAnswer> classify(const ClaimReply& reply, const std::optional<Run>& before);
std::optional<EnqueueAnswer> classify(const EnqueueReply& reply, const std::optional<Run>& before);

// Compares every member, to show that a run is unchanged.
bool same_run(const Run& a, const Run& b);

inline void PrintTo(const RepeatRow& row, std::ostream* out) { *out << name(row.standing); }
inline void PrintTo(const Run& run, std::ostream* out) {
  *out << to_string(run.id()) << " " << to_string(run.status());
}

}  // namespace latchkey
