// KeyWindow: the newest keys, in memory, between the moment their runs are appended and the moment they are merged into
// lk_keys. Keys arrive in random order; written one by one they would touch a page each. The window collects them and
// hands them out in order, a slice per commit, so that neighbours share a page.
//
//   stage() ──publish()──▶ fresh ──freeze()──▶ frozen ──next_slice()──▶ lk_keys
//
// Entries are kept by the first byte of their hash and each such part is sorted when its turn comes: sorting a million
// at once would hold up a commit.
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
  // Before a load of about this many.
  void reserve(std::size_t keys);
  void discard() { staged_.clear(); }

  // Any thread: published keys.
  std::optional<Seq> find(const ShortHash& hash) const;
  // Writer: forgets a purged run's key.
  void erase(const ShortHash& hash, Seq seq);

  // Writer: everything fresh becomes the frozen part. Only when none is left of the one before.
  void freeze();
  // Writer: the next entries in order, and how many of the window they stand for: fewer, where a key was purged or
  // changed hands meanwhile. take_slice(taken) once they are durable.
  struct Slice {
    std::vector<Entry> entries;
    std::size_t taken = 0;
  };
  Slice next_slice(std::size_t most);
  void take_slice(std::size_t count);
  std::size_t left() const { return frozen_.left; }
  void clear();

 private:
  using Map = absl::flat_hash_map<ShortHash, Seq>;
  static constexpr std::size_t kParts = 256;
  struct Half {
    Map map;
    std::array<std::vector<Entry>, kParts> parts;  // the writer's alone
    std::size_t left = 0;                          // entries in parts
    bool exact = true;                             // every entry in parts is what the map says
  };

  Map staged_;
  mutable std::shared_mutex mutex_;  // guards the maps of both halves against readers on other threads
  Half fresh_;
  Half frozen_;
  // Where the next slice begins, and up to which part they are sorted.
  std::size_t part_ = 0, offset_ = 0, sorted_ = 0;
};

}  // namespace latchkey
