// The table that stores a run's state (see migrations/0001_runs.up.sql). Most jobs need no row of their own in
// `states`: one row of `blocks` stores a range of jobs in the same state, one row of `outcomes` a range of jobs that
// completed alike at their first attempt. block_of() and is_plain_outcome() decide whether a run fits: only if run_of()
// restores exactly that run.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "model/run.hpp"

namespace latchkey::pg {

using Seq = std::int64_t;

inline Seq seq_in(const Uuid& id) { return static_cast<Seq>(uuid_counter(id)); }

// The largest number of runs in a block. A block that contains a run begins less than this below it.
inline constexpr Seq kBlockMax = 1000;

struct BlockOwner {
  std::int64_t fence_from = 0;  // a run's fence is this plus its seq
  Instant started_at;
  Instant lease_until;
  Duration lease{};
  Uuid session;
  bool operator==(const BlockOwner&) const = default;
};

struct Block {
  Seq lo = 0, hi = 0;
  std::string tenant;
  std::string function;
  std::int32_t priority = 0;
  Instant due_at;
  std::optional<BlockOwner> owner;  // none: queued

  bool contains(Seq seq) const { return lo <= seq && seq <= hi; }
  // Whether one row could store the runs of both.
  bool is_like(const Block& other) const;
  bool operator==(const Block&) const = default;
};

struct PlainOutcome {
  Fence fence{0};
  Instant started_at;
  Instant at;
  Bytes result;
};

Run run_of(std::shared_ptr<const RunHead> head, const Block& block);
Run run_of(std::shared_ptr<const RunHead> head, const PlainOutcome& outcome);
// A block that contains only this run; none if it needs a row of its own.
std::optional<Block> block_of(const Run& run);
bool is_plain_outcome(const Run& run);

}  // namespace latchkey::pg
