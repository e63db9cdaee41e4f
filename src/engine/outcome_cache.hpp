// OutcomeCache: completed outcomes that were seen lately, so that a replay waits for no write and reads no disk.
//
// It never answers what the store would not. A run that completed under `once` is, until its window ends, its key's
// latest run and does not change: it cannot be cancelled, retried or resolved (decide_move), not be purged (may_purge),
// and no older run of its key can be opened again (apply_move); a new run needs the window to be over. The window is
// judged by the store's clock, which never runs backwards, at the moment of the question. So what was seen completed
// may be said again, and there is nothing to invalidate, unless the store has lost what it had (Store::data_epoch).
//
// Bounded in bytes; what was not asked for lately goes first. Safe from any thread.
#pragma once

#include <array>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "model/requests.hpp"

namespace latchkey {

class OutcomeCache {
 public:
  explicit OutcomeCache(std::size_t bytes_max) : shard_bytes_max_(bytes_max / kShards) {}

  // Takes in a run if it is one that may be replayed. `era`: the store's, before it was asked.
  void add(const Run& run, Instant now, std::uint64_t data_epoch = 0);
  // Replay or Mismatch, if that is what the store would say; else none.
  std::optional<ClaimReply> find(const ClaimRequest& request, Instant now, std::uint64_t data_epoch = 0);
  std::size_t bytes() const;

 private:
  static constexpr std::size_t kShards = 16;

  struct Entry {
    std::shared_ptr<const Run> run;
    std::size_t bytes = 0;
    bool asked = false;  // since the hand went over it
  };
  struct HashOfHash {
    std::size_t operator()(const Digest& hash) const noexcept;
  };
  struct Shard {
    mutable std::mutex mutex;
    std::list<Entry> entries;  // oldest first
    std::unordered_map<Digest, std::list<Entry>::iterator, HashOfHash> by_key;
    std::size_t bytes = 0;
    std::uint64_t data_epoch = 0;

    // Whether what is of this era may be here; forgets what is of an older one.
    bool enter(std::uint64_t now_is);
    void erase(std::list<Entry>::iterator at);
    // Drops what was not asked for until it fits: second chance.
    void make_room(std::size_t bytes_max);
  };

  Shard& shard_of(const Digest& hash) { return shards_[hash[0] % kShards]; }
  std::shared_ptr<const Run> look_up(const ClaimRequest& request, Instant now, std::uint64_t data_epoch);

  std::array<Shard, kShards> shards_;
  std::size_t shard_bytes_max_;
};

}  // namespace latchkey
