// HeldKeys: keys that somebody is inserting in a transaction that is open, and whose turn it is to be looked at again.
//
// To see that one is held takes a millisecond. So tenants take turns, however many each of them holds; and where one
// holds a crowd, its next new keys are looked at apart before they are made, instead of by lanes that others wait for.
#pragma once

#include <list>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/uuid.hpp"

namespace latchkey::pg {

// With whose it is.
using TenantKey = std::pair<Uuid, std::string>;

class HeldKeys {
 public:
  static constexpr std::size_t kCrowd = 16;

  bool empty() const { return keys_.empty(); }
  // It is held, or waits to be looked at for the first time.
  bool contains(const Uuid& key) const { return keys_.contains(key); }
  // Whether one that would be made now is to be looked at first. It is noted then.
  bool must_be_seen(const Uuid& key, const std::string& tenant);
  // It was looked at.
  void note(const TenantKey& key, bool is_held);
  // The keys that were found free need not be looked at again before they are made, until this.
  void forget_free() { free_.clear(); }
  // Those to be looked at next, as many as there is time for: one of each tenant, then another of each.
  std::vector<TenantKey> next(std::size_t limit) const;

 private:
  struct OfTenant {
    // The newest first: who asks for one that is free need not wait for all that were asked for before it.
    std::list<Uuid> unseen;
    // The one that was looked at longest ago first.
    std::list<Uuid> held;
  };
  struct Slot {
    std::map<std::string, OfTenant>::iterator of;
    bool is_held;
    std::list<Uuid>::iterator at;
  };
  void add(const Uuid& key, const std::string& tenant, bool is_held);
  void remove(std::map<Uuid, Slot>::iterator slot);

  std::map<Uuid, Slot> keys_;
  std::map<std::string, OfTenant> tenants_;
  std::set<Uuid> free_;
  std::string last_;  // the tenant whose turn it was
};

}  // namespace latchkey::pg
