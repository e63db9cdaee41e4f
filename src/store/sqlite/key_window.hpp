// KeyWindow: the newest keys, in memory, from the insert of their runs until they are merged into lk_keys. Keys arrive
// in random order; written one by one, each would rewrite a page. The window collects them and returns them in sorted
// order, a slice per commit, so that neighbours share a page.
//
//   stage() ──publish()──▶ fresh ──freeze()──▶ frozen ──next_slice()──▶ lk_keys
//
// Entries are divided by the first byte of their hash, and each part is sorted when its first slice is needed: sorting
// a million entries at once would delay a commit.
//
// One writer; find() from any thread returns published keys only. It is lost in a crash and rebuilt from lk_runs.
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

// The first half of the key's SHA-256. It distinguishes keys, and on a hit the whole text is compared.
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

  // Writer: adds a key of the open transaction.
  void stage(const ShortHash& hash, Seq seq) { staged_[hash] = seq; }
  // Writer: the newest seq of a key, including staged ones.
  std::optional<Seq> find_staged(const ShortHash& hash) const;
  // Writer: the transaction was committed, or it was rolled back.
  void publish();
  // To be called before about this many keys are loaded.
  void reserve(std::size_t keys);
  void discard() { staged_.clear(); }

  // Any thread: finds published keys.
  std::optional<Seq> find(const ShortHash& hash) const;
  // Writer: erases the key of a purged run.
  void erase(const ShortHash& hash, Seq seq);

  // Writer: the fresh half becomes the frozen half, which must be empty before.
  void freeze();
  // Writer: the next entries in order, and the number of the window's entries that they cover. The entries may be
  // fewer, because a key was purged or given to another run meanwhile. Call take_slice(taken) when they are durable.
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
    std::array<std::vector<Entry>, kParts> parts;  // used by the writer only
    std::size_t left = 0;                          // entries in parts
    bool exact = true;                             // every entry in parts equals the map's
  };

  Map staged_;
  mutable std::shared_mutex mutex_;  // guards the maps of both halves against readers on other threads
  Half fresh_;
  Half frozen_;
  // The start of the next slice, and the number of sorted parts.
  std::size_t part_ = 0, offset_ = 0, sorted_ = 0;
};

}  // namespace latchkey
