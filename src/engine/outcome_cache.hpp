// OutcomeCache: recent outcomes of completed runs, so that a replay waits for no write and reads no disk.
//
// The cache never replies what the store would not. A run that completed under `once` is the key's latest run until its
// window ends, and it does not change in that time: it cannot be cancelled, retried or resolved (decide_move), nor
// purged (may_purge), and no older run of its key can be opened again (apply_move). A new run is created only after the
// window. Each request checks the window against the store's clock, which never runs backward. So no entry has to be
// invalidated, unless the store has lost data (Store::data_epoch).
//
// Bounded in bytes. Outcomes without a recent request are evicted first. Safe from any thread.
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

  // Adds the run if it may be replayed. `data_epoch` is the store's value from before the request.
  void add(const Run& run, Instant now, std::uint64_t data_epoch = 0);
  // Replay or Mismatch, if the store would reply the same; otherwise none.
  std::optional<ClaimReply> find(const ClaimRequest& request, Instant now, std::uint64_t data_epoch = 0);
  std::size_t bytes() const;

 private:
  static constexpr std::size_t kShards = 16;

  struct Entry {
    std::shared_ptr<const Run> run;
    std::size_t bytes = 0;
    bool is_recent = false;  // was replayed since make_room() last passed it
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

    // Drops all entries of an older epoch. Returns false if `now_is` itself is older than the shard's epoch.
    bool enter(std::uint64_t now_is);
    void erase(std::list<Entry>::iterator at);
    // Evicts entries until the rest fits, by the second-chance algorithm.
    void make_room(std::size_t bytes_max);
  };

  Shard& shard_of(const Digest& hash) { return shards_[hash[0] % kShards]; }
  std::shared_ptr<const Run> look_up(const ClaimRequest& request, Instant now, std::uint64_t data_epoch);

  std::array<Shard, kShards> shards_;
  std::size_t shard_bytes_max_;
};

}  // namespace latchkey
