#include "store/sqlite/key_window.hpp"

#include <algorithm>
#include <mutex>

#include "base/assert.hpp"

namespace latchkey {
namespace {

template <class Map>
std::optional<Seq> look_up(const Map& map, const ShortHash& hash) {
  const auto at = map.find(hash);
  if (at == map.end()) return std::nullopt;
  return at->second;
}

}  // namespace

std::optional<Seq> KeyWindow::find_staged(const ShortHash& hash) const {
  // The writer is the only one that changes these maps: it reads them without the lock.
  if (auto seq = look_up(staged_, hash)) return seq;
  if (auto seq = look_up(fresh_, hash)) return seq;
  return look_up(frozen_, hash);
}

std::optional<Seq> KeyWindow::find(const ShortHash& hash) const {
  const std::shared_lock lock(mutex_);
  if (auto seq = look_up(fresh_, hash)) return seq;
  return look_up(frozen_, hash);
}

void KeyWindow::publish() {
  if (staged_.empty()) return;
  const std::unique_lock lock(mutex_);
  for (const auto& [hash, seq] : staged_) fresh_[hash] = seq;
  staged_.clear();
}

void KeyWindow::erase(const ShortHash& hash, Seq seq) {
  const std::unique_lock lock(mutex_);
  for (Map* map : {&fresh_, &frozen_})
    if (const auto at = map->find(hash); at != map->end() && at->second == seq) map->erase(at);
}

void KeyWindow::freeze() {
  LK_ASSERT(left() == 0);
  {
    const std::unique_lock lock(mutex_);
    frozen_ = std::move(fresh_);
    fresh_ = {};
  }
  sorted_.assign(frozen_.begin(), frozen_.end());
  std::ranges::sort(sorted_);
  merged_ = 0;
}

bool KeyWindow::is_frozen(const Entry& entry) const { return look_up(frozen_, entry.first) == entry.second; }

std::span<const KeyWindow::Entry> KeyWindow::next_slice(std::size_t most) const {
  return std::span(sorted_).subspan(merged_, std::min(most, left()));
}

void KeyWindow::take_slice(std::size_t count) {
  merged_ += count;
  if (left() > 0) return;
  sorted_ = {};
  merged_ = 0;
  const std::unique_lock lock(mutex_);
  frozen_ = {};
}

void KeyWindow::clear() {
  const std::unique_lock lock(mutex_);
  staged_.clear();
  fresh_ = {};
  frozen_ = {};
  sorted_ = {};
  merged_ = 0;
}

}  // namespace latchkey
