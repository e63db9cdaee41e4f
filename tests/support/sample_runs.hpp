// Sample runs for each row of the repeat table, and sample requests for their key. Pure.
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
// A version-7 UUID, different for each number.
Uuid id_of(std::uint64_t number);

// Function "f", key "k", tenant "default", guard once, fingerprint kSame.
ClaimRequest a_claim(std::string key = "k", std::string tenant = "default");
EnqueueRequest a_job(std::string key = "k", std::string tenant = "default");
// The head that a store creates for a_claim(): once, rerun, three retries.
RunHead a_head();
// A run in the given state after one attempt with kOldFence, shortly before kNoon.
Run a_run(State state, RunHead head = a_head());
Run a_job_run(State state, RunHead head = a_head());

// The key's latest run at kNoon for a row of the table. None for KeyState::absent.
std::optional<Run> make_run_in(KeyState state);
// True if the row is about a `while-running` key; the others are `once`.
bool is_lock(KeyState state);
std::string_view name(KeyState state);

// The reply to a claim over HTTP.
struct WireAnswer {
  int status = 0;
  std::string code;
  bool retry_after = false;
  bool operator==(const WireAnswer&) const = default;
};
WireAnswer on_wire(const ClaimReply& reply);
// The table's name for this reply, for a key whose latest run was `before`. None for a mismatch.
std::optional<ClaimAnswer> classify(const ClaimReply& reply, const std::optional<Run>& before);
std::optional<EnqueueAnswer> classify(const EnqueueReply& reply, const std::optional<Run>& before);

// Compares every member.
bool same_run(const Run& a, const Run& b);

inline void PrintTo(const RepeatRow& row, std::ostream* out) { *out << name(row.state); }
inline void PrintTo(const Run& run, std::ostream* out) {
  *out << to_string(run.id()) << " " << to_string(run.status());
}

}  // namespace latchkey
