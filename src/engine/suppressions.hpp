// Suppressions: duplicates that were not run, counted per run in memory and written behind, so that counting costs the
// answer nothing. A crash may lose the last second. Bounded: with too many runs at once only the counts of those that
// are known go on, and past that nothing but a total. Safe from any thread.
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
// Which run stood in a claim's way, and why; none when it won.
std::optional<Suppressed> find_suppressed(const ClaimReply& reply);

class Suppressions {
 public:
  // How many runs are remembered between two flushes: in full up to a half, counts only up to the whole.
  explicit Suppressions(std::size_t runs_max = 65'536)
      : shard_runs_max_(std::max<std::size_t>(1, runs_max / kShards)) {}

  void note(RunId run, std::string_view reason, std::string_view caller, Instant at);
  // All that was seen since the last drain; it is the caller's then.
  std::vector<DuplicateNote> drain();
  // Takes back what could not be written.
  void restore(std::vector<DuplicateNote> notes);
  // What is in memory of this run. What is being written at this moment is in neither place.
  Duplicates find(RunId run) const;
  // Duplicates that were not remembered at all.
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
