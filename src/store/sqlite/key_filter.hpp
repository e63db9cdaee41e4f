// KeyFilter: shows for most new keys that lk_keys does not have them, so that a claim of a new key reads no page of the
// file. It is a Bloom filter with the bits of one key in one cache line. It is in memory only and is filled by a scan
// of lk_keys, a few pages per commit; merges add their keys. Until the scan has ended, every key may be in lk_keys. A
// full filter is replaced by a larger one, filled the same way. Erased keys stay in the filter as false positives.
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
  // Clears the filter. The next scan makes room for twice this number of keys.
  void reset(std::size_t keys);
  bool may_have(const ShortHash& hash) const { return !current_ || current_->has(hash); }
  void add(std::span<const KeyWindow::Entry> merged);
  // Continues the scan, if one is under way. To be called after the merge, in its transaction, so that no merged key is
  // missed. commit_scan() accepts the result when the transaction is durable; after a rollback the pages are read
  // again.
  void scan(KeyPages& keys, std::size_t pages);
  void commit_scan();
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
    std::optional<std::int64_t> last;  // none: the scan has ended
  };
  std::optional<Scan> pending_;
};

}  // namespace latchkey
