// Ledger: what was promised and done in one simulated world, and the invariants over it. It hears every answer the
// server gives, in the order the store gave them, and what callers hear and effects do; it trusts none of them.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "simulation/virtual_clock.hpp"
#include "store/store.hpp"

namespace latchkey::sim {

// What the store was like just before a request reached it.
struct Before {
  std::optional<Run> run;  // the key's latest, or the one that is named
};

class Ledger {
 public:
  explicit Ledger(VirtualClock& clock) : clock_(clock) {}

  // --- what the server answered. `exact`: nothing else was applied since `before` was read.
  void saw(const ClaimRequest& request, const Before& before, const ClaimReply& reply, Store& store, bool exact);
  void saw(const EnqueueRequest& request, const Before& before, const EnqueueReply& reply, Store& store, bool exact);
  void saw(const TakeRequest& request, const std::vector<Taken>& taken, Store& store);
  void saw(const ExtendRequest& request, const Before& before, const ExtendReply& reply, bool exact);
  void saw(const SettleRequest& request, const Before& before, const SettleReply& reply, bool exact);
  void saw(const MoveRequest& request, const Before& before, const MoveReply& reply, Instant now, bool exact);
  void saw(const DeadLetterActionRequest& wish, const DeadLetterActionReply& moved, Store& store);

  // --- what it did not live to answer, and may have done
  void unanswered(const SettleRequest& request);
  void unanswered(const MoveRequest& request);

  // --- what callers and workers did
  void effect_started(const Won& won);
  // An effect acts while it believes that its lease is good.
  void effect_acts(const Won& won, const Life& life, Duration last_forward_jump);
  void heard_replay(const ClaimRequest& request, const Run& run);
  void heard_ran(const Run& run);

  // --- the whole store
  void scan(Store& store, const Retention& retention);
  void check_dead_letters(Store& store);
  void check_waits(const Run& waiting, Store& store);
  std::uint64_t suppressed(RunId run) const;
  void check(bool good, const std::string& what);

  std::vector<std::string> violations;

 private:
  using KeyId = std::string;
  struct Owner {
    RunId run;
    KeyId key;
    ClaimId claim;
    Instant lease_until;   // as the store promised
    Duration issued_at{};  // virtual time
    bool ended = false;    // its settle was accepted
    bool started = false;  // an effect ran under it
  };
  struct Known {
    Run last;
    std::map<std::uint32_t, std::uint32_t> tries;        // by generation
    std::map<std::uint32_t, std::uint32_t> extra_tries;  // releases and reruns by hand
    std::set<std::uint32_t> completed;                   // generations
    std::optional<Bytes> result;                         // that was accepted
    std::vector<Bytes> unheard;                          // that may have been accepted
    std::map<std::uint32_t, std::uint32_t> retries;      // that were allowed, by generation
    std::map<std::uint32_t, std::vector<RunId>> after;   // by generation
    bool purged = false;
  };

  static KeyId key_of(const Run& run);
  void moved_by_hand(const Move& move, const Run& run);
  void issued(const Won& won, Instant now, bool was_held_before);
  static std::uint32_t find_retries(const Known& seen, const Run& run);
  void look(const Run& run);
  void completed(const Run& run, const Bytes& result);
  Known& known(const Run& run);
  bool is_newest(RunId run, Fence fence) const;

  VirtualClock& clock_;
  Instant latest_now_;
  std::map<Fence, Owner> owners_;
  std::map<KeyId, std::vector<Fence>> by_key_;
  std::map<RunId, Fence> newest_;
  std::map<RunId, Known> runs_;
  std::map<RunId, std::uint64_t> suppressed_;
  std::map<ClaimId, RunId> made_by_;  // jobs without a key
};

}  // namespace latchkey::sim
