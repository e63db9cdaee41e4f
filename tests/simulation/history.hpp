// History: all replies and effects of one simulated world, and the invariants over them. It records every reply of the
// server, in the order of the store, the replies that reach callers, and what effects do. It trusts none of them.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "simulation/virtual_clock.hpp"
#include "store/store.hpp"

namespace latchkey::sim {

// The store's state just before a request reached it.
struct Before {
  std::optional<Run> run;  // the key's latest run, or the run that the request names
};

class History {
 public:
  explicit History(VirtualClock& clock) : clock_(clock) {}

  // --- replies of the server. `exact`: no other command was applied since `before` was read.
  void saw(const ClaimRequest& request, const Before& before, const ClaimReply& reply, Store& store, bool exact);
  void saw(const EnqueueRequest& request, const Before& before, const EnqueueReply& reply, Store& store, bool exact);
  void saw(const TakeRequest& request, const std::vector<Taken>& taken, Store& store);
  void saw(const ExtendRequest& request, const Before& before, const ExtendReply& reply, bool exact);
  void saw(const SettleRequest& request, const Before& before, const SettleReply& reply, bool exact);
  void saw(const MoveRequest& request, const Before& before, const MoveReply& reply, Instant now, bool exact);
  void saw(const DeadLetterActionRequest& wish, const DeadLetterActionReply& moved, Store& store);

  // --- requests without a reply, which may have taken effect
  void unanswered(const SettleRequest& request);
  void unanswered(const MoveRequest& request);

  // --- actions of callers and workers
  void effect_started(const Won& won);
  // An effect acts while its owner believes that the lease is valid.
  void effect_acts(const Won& won, const Life& life, Duration last_forward_jump);
  void caller_got_replay(const ClaimRequest& request, const Run& run);
  void caller_got_outcome(const Run& run);

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
    Instant lease_until;   // from the store's reply
    Duration issued_at{};  // virtual time
    bool ended = false;    // its settle was accepted
    bool started = false;  // an effect ran under it
  };
  struct Known {
    Run last;
    std::map<std::uint32_t, std::uint32_t> attempts;        // by generation
    std::map<std::uint32_t, std::uint32_t> extra_attempts;  // by releases and operators' reruns
    std::set<std::uint32_t> completed;                      // generations
    std::optional<Bytes> result;                            // the accepted one
    std::vector<Bytes> possible_results;                    // of settles without a reply
    std::map<std::uint32_t, std::uint32_t> retries;         // allowed, by generation
    std::map<std::uint32_t, std::vector<RunId>> after;      // by generation
    bool purged = false;
  };

  static KeyId key_of(const Run& run);
  void acted_on(const Move& move, const Run& run);
  void issued(const Won& won, Instant now, bool is_repeat);
  static std::uint32_t allowed_retries(const Known& seen, const Run& run);
  void observe(const Run& run);
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
