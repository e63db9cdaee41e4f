#include "store/sqlite/key_filter.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/seeded_bug.hpp"

namespace latchkey {
namespace {

constexpr std::size_t kBitsPerKey = 10, kBlockBits = 512, kProbes = 6;
// 64 MiB of bits. With more keys, the filter has more false positives.
constexpr std::size_t kRoomMost = 50'000'000;

// The hash is a part of a SHA-256, so its bytes are evenly distributed.
std::uint64_t word(const ShortHash& hash, std::size_t at) {
  std::uint64_t value;
  std::memcpy(&value, hash.bytes.data() + at, sizeof value);
  return value;
}

}  // namespace

KeyFilter::Bits::Bits(std::size_t keys) : blocks_(std::bit_ceil(keys * kBitsPerKey / kBlockBits + 1)), room_(keys) {}

std::size_t KeyFilter::Bits::block_of(const ShortHash& hash) const { return word(hash, 0) & (blocks_.size() - 1); }

void KeyFilter::Bits::add(const ShortHash& hash) {
  Block& block = blocks_[block_of(hash)];
  std::uint64_t bits = word(hash, 8);
  for (std::size_t i = 0; i < kProbes; ++i, bits >>= 9) block[bits >> 6 & 7] |= std::uint64_t{1} << (bits & 63);
  added_ += 1;
}

bool KeyFilter::Bits::has(const ShortHash& hash) const {
  const Block& block = blocks_[block_of(hash)];
  std::uint64_t bits = word(hash, 8);
  for (std::size_t i = 0; i < kProbes; ++i, bits >>= 9)
    if (!(block[bits >> 6 & 7] >> (bits & 63) & 1)) return false;
  return true;
}

void KeyFilter::reset(std::size_t keys) {
  current_.reset();
  begin_scan(2 * keys);
}

void KeyFilter::begin_scan(std::size_t room) {
  next_.emplace(std::clamp(room, room_least_, kRoomMost));
  scanned_ = -1;
  pending_.reset();
}

void KeyFilter::add(std::span<const KeyWindow::Entry> merged) {
  if (LK_SEEDED(filter_ignores_merges)) return;
  for (const auto& [hash, seq] : merged) {
    if (current_) current_->add(hash);
    if (next_) next_->add(hash);
  }
  if (!next_ && current_ && current_->is_full() && current_->room() < kRoomMost) begin_scan(2 * current_->room());
}

void KeyFilter::scan(KeyPages& keys, std::size_t pages) {
  if (!next_) return;
  if (LK_SEEDED(filter_scan_skips_a_page) && scanned_ < 0) scanned_ = 0;
  pending_ = Scan{keys.read_after(scanned_, pages, [&](const ShortHash& hash) { next_->add(hash); })};
}

void KeyFilter::commit_scan() {
  const auto scan = std::exchange(pending_, std::nullopt);
  if (!scan) return;
  if (scan->last) {
    scanned_ = *scan->last;
  } else {
    current_ = std::exchange(next_, std::nullopt);
  }
}

}  // namespace latchkey
