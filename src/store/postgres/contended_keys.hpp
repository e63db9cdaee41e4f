// ContendedKeys: keys that somebody is inserting in a transaction that is open, and whose turn it is to be looked at
// again.
//
// To see that one is held takes a millisecond. So tenants take turns, however many each of them holds. And while more
// and more of one tenant's are found, its next new keys are looked at apart before they are made, instead of by lanes
// that others wait for.
#pragma once

#include <deque>
#include <list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/time.hpp"
#include "base/uuid.hpp"

namespace latchkey::pg {

// With whose it is.
using TenantKey = std::pair<Uuid, std::string>;

// Times are of one steady clock.
class ContendedKeys {
 public:
  // So many that were found within so long are a crowd.
  static constexpr std::size_t kQuarantineThreshold = 16;
  static constexpr Duration kWithin = std::chrono::milliseconds{500};

  bool empty() const { return keys_.empty(); }
  // It is held, or waits to be looked at for the first time.
  bool contains(const Uuid& key) const { return keys_.contains(key); }
  bool is_held(const Uuid& key) const {
    const auto slot = keys_.find(key);
    return slot != keys_.end() && slot->second.is_held;
  }
  // Whether one that would be made now is to be looked at first. It is noted then.
  bool is_quarantined(const Uuid& key, const std::string& tenant, Duration now);
  // It was looked at.
  void note(const TenantKey& key, bool is_held, Duration now);
  // Forgets what no longer matters: keys that were found free a while ago, and those that wait to be looked at where
  // there is no crowd any more.
  void tidy(Duration now);

  // Those to be looked at next, as many as there is time for: one of each tenant, then another of each.
  std::vector<TenantKey> next_held(std::size_t limit) const { return next(limit, &OfTenant::held); }
  std::vector<TenantKey> next_unseen(std::size_t limit) const { return next(limit, &OfTenant::unseen); }

 private:
  // How long one that was found free may be made without another look.
  static constexpr Duration kFreeFor = std::chrono::seconds{2};
  // The oldest of more than these are looked at when they are asked for again.
  static constexpr std::size_t kUnseenMost = 10'000;

  struct OfTenant {
    // The newest first: who asks for one that is free need not wait for all that were asked for before it.
    std::list<Uuid> unseen;
    // The one that was looked at longest ago first.
    std::list<Uuid> held;
    // When the last of them were found to be held.
    std::deque<Duration> found;

    bool is_crowd(Duration now) const { return found.size() > kQuarantineThreshold && now - found.front() <= kWithin; }
  };
  using Tenants = std::map<std::string, OfTenant>;
  struct Slot {
    Tenants::iterator of;
    bool is_held;
    std::list<Uuid>::iterator at;
  };
  std::vector<TenantKey> next(std::size_t limit, std::list<Uuid> OfTenant::* which) const;
  void add(const Uuid& key, const std::string& tenant, bool is_held);
  void remove(const Uuid& key);

  std::map<Uuid, Slot> keys_;
  Tenants tenants_;
  std::map<Uuid, Duration> free_;  // since when
  std::string last_;               // the tenant whose turn it was
};

}  // namespace latchkey::pg
