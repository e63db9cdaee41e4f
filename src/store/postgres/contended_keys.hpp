// ContendedKeys: keys that other open transactions are inserting, and the order in which the contended writer probes
// them.
//
// A probe of a contended key costs a millisecond. Tenants are therefore probed round-robin, however many keys each of
// them has here. A tenant whose contended keys increase quickly is quarantined: its next new keys are probed before
// they are inserted, so that they do not block the writers that all tenants share.
//
// For one thread. Every time is of one steady clock.
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

using TenantKey = std::pair<Uuid, std::string>;  // a key and its tenant

class ContendedKeys {
 public:
  // A tenant is quarantined when more keys than this were found contended within the window.
  static constexpr std::size_t kQuarantineThreshold = 16;
  static constexpr Duration kQuarantineWindow = std::chrono::milliseconds{500};

  bool empty() const { return keys_.empty(); }
  // The key is contended, or waits for its first probe.
  bool contains(const Uuid& key) const { return keys_.contains(key); }
  bool is_contended(const Uuid& key) const {
    const auto slot = keys_.find(key);
    return slot != keys_.end() && slot->second.is_contended;
  }
  // Returns true if a new key must be probed before it is inserted, and adds it to the keys to probe.
  bool must_be_probed(const Uuid& key, const std::string& tenant, Duration now);
  // A probe found the key contended.
  void add_contended(const TenantKey& key, Duration now);
  // A probe found the key free.
  void mark_free(const TenantKey& key, Duration now);
  // Removes keys that were found free a while ago, and unprobed keys of tenants that are no longer quarantined.
  void prune(Duration now);

  // The keys to probe next: one of each tenant, then another of each.
  std::vector<TenantKey> next_contended(std::size_t limit) const { return next(limit, &TenantKeys::contended); }
  std::vector<TenantKey> next_unprobed(std::size_t limit) const { return next(limit, &TenantKeys::unprobed); }

 private:
  // A key that was found free may be inserted without another probe for this long.
  static constexpr Duration kFreeFor = std::chrono::seconds{2};
  // The oldest unprobed key of a tenant is evicted beyond this number. It is added again when a caller retries.
  static constexpr std::size_t kUnprobedMax = 10'000;

  struct TenantKeys {
    // The newest first: a free key need not wait for the probes of all older ones.
    std::list<Uuid> unprobed;
    // The least recently probed first.
    std::list<Uuid> contended;
    // The times at which the latest of them were found contended.
    std::deque<Duration> found;

    bool is_quarantined(Duration now) const {
      return found.size() > kQuarantineThreshold && now - found.front() <= kQuarantineWindow;
    }
    std::list<Uuid>& list(bool is_contended) { return is_contended ? contended : unprobed; }
  };
  using Tenants = std::map<std::string, TenantKeys>;
  struct Slot {
    Tenants::iterator tenant;
    bool is_contended;
    std::list<Uuid>::iterator at;
  };
  std::vector<TenantKey> next(std::size_t limit, std::list<Uuid> TenantKeys::* which) const;
  void add(const Uuid& key, const std::string& tenant, bool is_contended);
  void remove(const Uuid& key);

  std::map<Uuid, Slot> keys_;
  Tenants tenants_;
  std::map<Uuid, Duration> free_;  // keys that were found free, and when
  std::string last_;               // the tenant that was probed last
};

}  // namespace latchkey::pg
