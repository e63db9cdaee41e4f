// KeyWindow: the newest keys, in memory, between the moment their runs are appended and the moment they are merged into
// lk_keys. Keys arrive in random order; written one by one they would touch a page each. The window collects them,
// sorts them, and hands them out a slice per commit, so that neighbours share a page.
//
//   stage() ──publish()──▶ fresh ──freeze()──▶ frozen, sorted ──next_slice()──▶ lk_keys
//
// One writer; find() from any thread sees published keys only. Lost on a crash and rebuilt from lk_runs.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <array>
#include <cstring>
#include <optional>
#include <shared_mutex>
#include <span>
#include <vector>

#include "base/sha256.hpp"
#include "store/sqlite/run_rows.hpp"

namespace latchkey {

// The first half of the key's SHA-256: enough to tell keys apart, and the whole text is compared on a hit.
struct ShortHash {
  std::array<unsigned char, 16> bytes{};

  ShortHash() = default;
  explicit ShortHash(const Digest& digest) { std::memcpy(bytes.data(), digest.data(), bytes.size()); }
  auto operator<=>(const ShortHash&) const = default;
  template <class H>
  friend H AbslHashValue(H state, const ShortHash& hash) {
    std::uint64_t low;
    std::memcpy(&low, hash.bytes.data(), sizeof low);
    return H::combine(std::move(state), low);
  }
};

class KeyWindow {
 public:
  using Entry = std::pair<ShortHash, Seq>;

  // Writer: a key of the transaction that is open.
  void stage(const ShortHash& hash, Seq seq) { staged_[hash] = seq; }
  // Writer: the newest seq, staged ones included.
  std::optional<Seq> find_staged(const ShortHash& hash) const;
  // Writer: the transaction is durable, or it is undone.
  void publish();
  void discard() { staged_.clear(); }

  // Any thread: published keys.
  std::optional<Seq> find(const ShortHash& hash) const;
  // Writer: forgets a purged run's key.
  void erase(const ShortHash& hash, Seq seq);

  // Writer: everything fresh becomes the frozen part, in order. Only when none is left of the one before.
  void freeze();
  // Writer: whether an entry of a slice still stands, not purged since it was frozen.
  bool is_frozen(const Entry& entry) const;
  // Writer: the next entries to write; take_slice() once they are durable.
  std::span<const Entry> next_slice(std::size_t most) const;
  void take_slice(std::size_t count);
  std::size_t left() const { return sorted_.size() - merged_; }
  void clear();

 private:
  using Map = absl::flat_hash_map<ShortHash, Seq>;
  Map staged_;
  mutable std::shared_mutex mutex_;  // guards fresh_ and frozen_ against readers on other threads
  Map fresh_;
  Map frozen_;
  std::vector<Entry> sorted_;
  std::size_t merged_ = 0;
};

}  // namespace latchkey
