// KeyFilter: says of most new keys that lk_keys does not have them, so that a claim of a new key reads no page of the
// file. A Bloom filter whose bits for one key lie in one cache line. Derived from the file and kept in memory only: it
// is filled by a scan of lk_keys, a few pages per commit, beside which merges add theirs; until the scan is through it
// says "perhaps". When it has grown full, a larger one is filled the same way. Erased keys stay in it: "perhaps" is
// never wrong.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "store/sqlite/key_pages.hpp"

namespace latchkey {

class KeyFilter {
 public:
  static constexpr std::size_t kRoomLeast = 256 * 1024;

  explicit KeyFilter(std::size_t room_least = kRoomLeast) : room_least_(room_least) {}
  // Forgets everything; the next scan makes room for twice as many keys as are said to be there.
  void reset(std::size_t keys);
  bool may_have(const ShortHash& hash) const { return !current_ || current_->has(hash); }
  void add(std::span<const KeyWindow::Entry> merged);
  // Moves the scan on, if one is under way. After the merge, in its transaction: what that wrote was added, or is seen.
  // Counts once that transaction is durable; undone, the same pages are read again, as they then are.
  void scan(KeyPages& keys, std::size_t pages);
  void keep_scan();
  void forget_scan() { pending_.reset(); }
  bool is_scanning() const { return next_.has_value(); }

 private:
  class Bits {
   public:
    explicit Bits(std::size_t keys);
    void add(const ShortHash& hash);
    bool has(const ShortHash& hash) const;
    bool is_full() const { return added_ > room_; }
    std::size_t room() const { return room_; }

   private:
    using Block = std::array<std::uint64_t, 8>;
    std::size_t block_of(const ShortHash& hash) const;
    std::vector<Block> blocks_;
    std::size_t room_;
    std::size_t added_ = 0;
  };

  void begin_scan(std::size_t room);

  const std::size_t room_least_;
  std::optional<Bits> current_;
  std::optional<Bits> next_;
  std::int64_t scanned_ = -1;
  struct Scan {
    std::optional<std::int64_t> last;  // none: it is through
  };
  std::optional<Scan> pending_;
};

}  // namespace latchkey
