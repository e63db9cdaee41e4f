// Suppressions: counts suppressed repeats per run in memory. The maintenance loop writes the counts later, so that a
// reply does not wait for them. A crash may lose the last second. Bounded: with many runs only counts are stored,
// without callers; repeats of further runs are only added to a total. Safe from any thread.
#pragma once

#include <array>
#include <atomic>
#include <mutex>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/requests.hpp"
#include "store/duplicates.hpp"

namespace latchkey {

inline constexpr std::string_view kReplayed = "REPLAYED";
inline constexpr std::string_view kDuplicate = "DUPLICATE";  // enqueued again

struct Suppressed {
  RunId run;
  std::string_view reason;
};
// The run because of which a claim was refused or replayed, and the reason; none when the claim won.
std::optional<Suppressed> find_suppressed(const ClaimReply& reply);

class Suppressions {
 public:
  // `runs_max` is the number of runs between two drains: up to a half with their callers, the rest with counts only.
  explicit Suppressions(std::size_t runs_max = 65'536)
      : shard_runs_max_(std::max<std::size_t>(1, runs_max / kShards)) {}

  void note(RunId run, std::string_view reason, std::string_view caller, Instant at);
  // Removes and returns all counts since the last drain.
  std::vector<DuplicateNote> drain();
  // Adds counts that could not be written.
  void restore(std::vector<DuplicateNote> notes);
  // The counts of this run in memory. Counts that are being written at this moment are not included.
  Duplicates find(RunId run) const;
  // The number of repeats without a count of their run.
  std::uint64_t forgotten() const { return forgotten_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::size_t kShards = 16;
  struct Shard {
    mutable std::mutex mutex;
    std::unordered_map<RunId, Duplicates> seen;
  };
  Shard& shard_of(RunId run) { return shards_[std::hash<RunId>{}(run) >> 32 & (kShards - 1)]; }
  const Shard& shard_of(RunId run) const { return const_cast<Suppressions*>(this)->shard_of(run); }

  std::array<Shard, kShards> shards_;
  std::size_t shard_runs_max_;
  std::atomic<std::uint64_t> forgotten_{0};
};

}  // namespace latchkey
