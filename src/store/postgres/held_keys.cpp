#include "store/postgres/held_keys.hpp"

namespace latchkey::pg {

bool HeldKeys::must_be_seen(const Uuid& key, const std::string& tenant) {
  if (keys_.contains(key)) return true;
  const auto of = tenants_.find(tenant);
  if (of == tenants_.end() || of->second.held.size() <= kCrowd || free_.contains(key)) return false;
  add(key, tenant, false);
  return true;
}

void HeldKeys::note(const TenantKey& key, bool is_held) {
  last_ = key.second;
  const auto slot = keys_.find(key.first);
  if (slot != keys_.end()) {
    remove(slot);
    if (!is_held) free_.insert(key.first);
  }
  if (is_held) add(key.first, key.second, true);
}

std::vector<TenantKey> HeldKeys::next(std::size_t limit) const {
  struct Turn {
    const std::string* tenant;
    const OfTenant* of;
    std::list<Uuid>::const_iterator unseen, held;
    bool is_helds = false;  // turn, of the two
  };
  std::vector<Turn> turns;
  const auto first = tenants_.upper_bound(last_);
  const auto add_turns = [&](auto from, auto to) {
    for (; from != to && turns.size() < limit; ++from)
      turns.push_back({&from->first, &from->second, from->second.unseen.begin(), from->second.held.begin()});
  };
  add_turns(first, tenants_.end());
  add_turns(tenants_.begin(), first);
  std::vector<TenantKey> keys;
  while (!turns.empty()) {
    std::vector<Turn> left;
    for (Turn& turn : turns) {
      if (keys.size() == limit) return keys;
      const bool has_unseen = turn.unseen != turn.of->unseen.end(), has_held = turn.held != turn.of->held.end();
      if (!has_unseen && !has_held) continue;
      const bool takes_held = has_held && (turn.is_helds || !has_unseen);
      keys.emplace_back(takes_held ? *turn.held++ : *turn.unseen++, *turn.tenant);
      turn.is_helds = !takes_held;
      left.push_back(turn);
    }
    turns = std::move(left);
  }
  return keys;
}

void HeldKeys::add(const Uuid& key, const std::string& tenant, bool is_held) {
  const auto of = tenants_.try_emplace(tenant).first;
  std::list<Uuid>& keys = is_held ? of->second.held : of->second.unseen;
  keys_.insert_or_assign(key, Slot{of, is_held, keys.insert(is_held ? keys.end() : keys.begin(), key)});
}

void HeldKeys::remove(std::map<Uuid, Slot>::iterator slot) {
  const auto of = slot->second.of;
  (slot->second.is_held ? of->second.held : of->second.unseen).erase(slot->second.at);
  if (of->second.held.empty() && of->second.unseen.empty()) tenants_.erase(of);
  keys_.erase(slot);
}

}  // namespace latchkey::pg
