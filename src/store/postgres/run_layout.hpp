// Where a run's state lies when it needs no row of its own (see migrations/0001_runs.up.sql): a block speaks for a
// range of jobs that have fared alike, an outcome for jobs that completed alike at their first try. block_of() and
// is_plain_outcome() say whether a run may lie there: only if run_of() gives back exactly that run.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "model/run.hpp"

namespace latchkey::pg {

using Seq = std::int64_t;

inline Seq seq_in(const Uuid& id) { return static_cast<Seq>(uuid_counter(id)); }

// A run in no block that begins further below it.
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
  // Whether runs of both could lie in one.
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
// The block of this run alone.
std::optional<Block> block_of(const Run& run);
bool is_plain_outcome(const Run& run);

}  // namespace latchkey::pg
