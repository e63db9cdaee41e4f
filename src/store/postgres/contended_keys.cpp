#include "store/postgres/contended_keys.hpp"

namespace latchkey::pg {

bool ContendedKeys::is_quarantined(const Uuid& key, const std::string& tenant, Duration now) {
  if (keys_.empty()) return false;
  if (keys_.contains(key)) return true;
  const auto of = tenants_.find(tenant);
  if (of == tenants_.end() || !of->second.is_crowd(now) || free_.contains(key)) return false;
  if (of->second.unseen.size() >= kUnseenMost) remove(Uuid(of->second.unseen.back()));
  add(key, tenant, false);
  return true;
}

void ContendedKeys::note(const TenantKey& key, bool is_held, Duration now) {
  last_ = key.second;
  const auto slot = keys_.find(key.first);
  const bool is_known = slot != keys_.end(), was_held = is_known && slot->second.is_held;
  // What is there is moved behind the others; it stays that tenant's.
  if (is_held) add(key.first, key.second, true);
  if (is_known && !is_held) {
    remove(key.first);
    free_[key.first] = now;
  }
  if (!is_held || was_held) return;
  std::deque<Duration>& found = tenants_.at(key.second).found;
  found.push_back(now);
  if (found.size() > kQuarantineThreshold + 1) found.pop_front();
}

void ContendedKeys::tidy(Duration now) {
  std::erase_if(free_, [&](const auto& one) { return now - one.second > kFreeFor; });
  for (auto of = tenants_.begin(); of != tenants_.end();) {
    const auto one = of++;  // it may go with its last key
    if (one->second.is_crowd(now)) continue;
    for (const Uuid& key : std::list<Uuid>(one->second.unseen)) remove(key);
  }
}

std::vector<TenantKey> ContendedKeys::next(std::size_t limit, std::list<Uuid> OfTenant::* which) const {
  struct Turn {
    const std::string* tenant;
    std::list<Uuid>::const_iterator at, end;
  };
  std::vector<Turn> turns;
  const auto add_turns = [&](auto from, auto to) {
    for (; from != to && turns.size() < limit; ++from)
      if (const auto& keys = from->second.*which; !keys.empty())
        turns.push_back({&from->first, keys.begin(), keys.end()});
  };
  const auto first = tenants_.upper_bound(last_);
  add_turns(first, tenants_.end());
  add_turns(tenants_.begin(), first);
  std::vector<TenantKey> keys;
  while (!turns.empty()) {
    for (Turn& turn : turns) {
      if (keys.size() == limit) return keys;
      keys.emplace_back(*turn.at++, *turn.tenant);
    }
    std::erase_if(turns, [](const Turn& turn) { return turn.at == turn.end; });
  }
  return keys;
}

void ContendedKeys::add(const Uuid& key, const std::string& tenant, bool is_held) {
  const auto of = tenants_.try_emplace(tenant).first;
  std::list<Uuid>& keys = is_held ? of->second.held : of->second.unseen;
  const Slot slot{of, is_held, keys.insert(is_held ? keys.end() : keys.begin(), key)};
  const auto known = keys_.find(key);
  if (known == keys_.end()) {
    keys_.emplace(key, slot);
    return;
  }
  Slot& before = known->second;
  (before.is_held ? before.of->second.held : before.of->second.unseen).erase(before.at);
  before = slot;
}

void ContendedKeys::remove(const Uuid& key) {
  const auto slot = keys_.find(key);
  const auto of = slot->second.of;
  (slot->second.is_held ? of->second.held : of->second.unseen).erase(slot->second.at);
  if (of->second.held.empty() && of->second.unseen.empty()) tenants_.erase(of);
  keys_.erase(slot);
}

}  // namespace latchkey::pg
