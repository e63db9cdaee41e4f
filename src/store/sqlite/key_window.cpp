#include "store/sqlite/key_window.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

#include "base/assert.hpp"

namespace latchkey {
namespace {

template <class Map>
std::optional<Seq> find_in(const Map& map, const ShortHash& hash) {
  const auto at = map.find(hash);
  if (at == map.end()) return std::nullopt;
  return at->second;
}

}  // namespace

std::optional<Seq> KeyWindow::find_staged(const ShortHash& hash) const {
  // Only the writer changes these maps, so it reads them without the lock.
  if (auto seq = find_in(staged_, hash)) return seq;
  if (auto seq = find_in(fresh_.map, hash)) return seq;
  return find_in(frozen_.map, hash);
}

std::optional<Seq> KeyWindow::find(const ShortHash& hash) const {
  const std::shared_lock lock(mutex_);
  if (auto seq = find_in(fresh_.map, hash)) return seq;
  return find_in(frozen_.map, hash);
}

void KeyWindow::publish() {
  if (staged_.empty()) return;
  const std::unique_lock lock(mutex_);
  for (const auto& entry : staged_) {
    if (!fresh_.map.insert_or_assign(entry.first, entry.second).second) fresh_.exact = false;
    fresh_.parts[entry.first.bytes[0]].push_back(entry);
  }
  fresh_.left += staged_.size();
  staged_.clear();
}

void KeyWindow::reserve(std::size_t keys) {
  const std::unique_lock lock(mutex_);
  fresh_.map.reserve(keys);
}

void KeyWindow::erase(const ShortHash& hash, Seq seq) {
  const std::unique_lock lock(mutex_);
  for (Half* half : {&fresh_, &frozen_}) {
    const auto at = half->map.find(hash);
    if (at == half->map.end() || at->second != seq) continue;
    half->map.erase(at);
    half->exact = false;
  }
}

void KeyWindow::freeze() {
  LK_ASSERT(left() == 0);
  const std::unique_lock lock(mutex_);
  frozen_ = std::exchange(fresh_, {});
  part_ = offset_ = sorted_ = 0;
  // About as many keys are expected again. Growing the map step by step would delay a commit each time.
  fresh_.map.reserve(frozen_.map.size());
}

KeyWindow::Slice KeyWindow::next_slice(std::size_t most) {
  Slice slice;
  std::size_t offset = offset_;
  for (std::size_t part = part_; part < kParts && slice.taken < most; ++part, offset = 0) {
    auto& entries = frozen_.parts[part];
    if (part >= sorted_) {
      std::ranges::sort(entries);
      sorted_ = part + 1;
    }
    const std::size_t end = std::min(entries.size(), offset + most - slice.taken);
    for (std::size_t i = offset; i < end; ++i)
      if (frozen_.exact || find_in(frozen_.map, entries[i].first) == entries[i].second)
        slice.entries.push_back(entries[i]);
    slice.taken += end - offset;
  }
  // A key that was given to another run and back has two equal entries.
  if (!frozen_.exact) slice.entries.erase(std::ranges::unique(slice.entries).begin(), slice.entries.end());
  return slice;
}

void KeyWindow::take_slice(std::size_t count) {
  LK_ASSERT(count <= frozen_.left);
  frozen_.left -= count;
  for (offset_ += count; part_ < kParts && offset_ >= frozen_.parts[part_].size(); ++part_) {
    offset_ -= frozen_.parts[part_].size();
    frozen_.parts[part_] = {};
  }
  if (frozen_.left > 0) return;
  const std::unique_lock lock(mutex_);
  frozen_ = {};
}

void KeyWindow::clear() {
  const std::unique_lock lock(mutex_);
  staged_.clear();
  fresh_ = {};
  frozen_ = {};
  part_ = offset_ = sorted_ = 0;
}

}  // namespace latchkey
