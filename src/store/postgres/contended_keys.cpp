#include "store/postgres/contended_keys.hpp"

namespace latchkey::pg {

bool ContendedKeys::must_be_probed(const Uuid& key, const std::string& tenant, Duration now) {
  if (keys_.empty()) return false;
  if (keys_.contains(key)) return true;
  const auto of = tenants_.find(tenant);
  if (of == tenants_.end() || !of->second.is_quarantined(now) || free_.contains(key)) return false;
  if (of->second.unprobed.size() >= kUnprobedMax) remove(Uuid(of->second.unprobed.back()));
  add(key, tenant, false);
  return true;
}

void ContendedKeys::add_contended(const TenantKey& key, Duration now) {
  last_ = key.second;
  const bool was_contended = is_contended(key.first);
  // A key that is known already moves behind the others.
  add(key.first, key.second, true);
  if (was_contended) return;
  std::deque<Duration>& found = tenants_.at(key.second).found;
  found.push_back(now);
  if (found.size() > kQuarantineThreshold + 1) found.pop_front();
}

void ContendedKeys::mark_free(const TenantKey& key, Duration now) {
  last_ = key.second;
  if (!contains(key.first)) return;
  remove(key.first);
  free_[key.first] = now;
}

void ContendedKeys::prune(Duration now) {
  std::erase_if(free_, [&](const auto& one) { return now - one.second > kFreeFor; });
  for (auto next = tenants_.begin(); next != tenants_.end();) {
    const auto tenant = next++;  // removing its last key removes the tenant
    if (tenant->second.is_quarantined(now)) continue;
    for (const Uuid& key : std::list<Uuid>(tenant->second.unprobed)) remove(key);
  }
}

std::vector<TenantKey> ContendedKeys::next(std::size_t limit, std::list<Uuid> TenantKeys::* which) const {
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

void ContendedKeys::add(const Uuid& key, const std::string& tenant, bool is_contended) {
  const auto of = tenants_.try_emplace(tenant).first;
  std::list<Uuid>& keys = of->second.list(is_contended);
  const Slot slot{of, is_contended, keys.insert(is_contended ? keys.end() : keys.begin(), key)};
  const auto known = keys_.find(key);
  if (known == keys_.end()) {
    keys_.emplace(key, slot);
    return;
  }
  Slot& before = known->second;
  before.tenant->second.list(before.is_contended).erase(before.at);
  before = slot;
}

void ContendedKeys::remove(const Uuid& key) {
  const auto slot = keys_.find(key);
  const auto of = slot->second.tenant;
  of->second.list(slot->second.is_contended).erase(slot->second.at);
  if (of->second.contended.empty() && of->second.unprobed.empty()) tenants_.erase(of);
  keys_.erase(slot);
}

}  // namespace latchkey::pg
