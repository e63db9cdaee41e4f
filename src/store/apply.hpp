// Commands applied to tables: decide, then write. One function per verb of the store; no policy of its own.
#pragma once

#include "base/random.hpp"
#include "store/tables.hpp"

namespace latchkey {

// What a command is applied with. `now` is the store's clock, read once per batch.
struct Applying {
  Tables& tables;
  Random& random;
  Instant now;
};

// What the key, or the named call, of a request is found by; none where nothing is looked up. For stores that read
// ahead.
std::optional<Digest> lookup_hash(const ClaimRequest& request);
std::optional<Digest> lookup_hash(const EnqueueRequest& request);

ClaimReply apply_claim(Applying with, const ClaimRequest& request);
EnqueueReply apply_enqueue(Applying with, const EnqueueRequest& request);
std::vector<Taken> apply_take(Applying with, const TakeRequest& request);
ExtendReply apply_extend(Applying with, const ExtendRequest& request);
SettleReply apply_settle(Applying with, const SettleRequest& request);
MoveReply apply_move(Applying with, const MoveRequest& request);
// apply_letters.cpp
std::optional<DeadLetterActionReply> apply_dead_letter_action(Applying with, const DeadLetterActionRequest& wish);
Swept apply_sweep(Applying with, std::uint32_t limit);
Swept apply_purge(Applying with, const Retention& retention, std::uint32_t limit);

}  // namespace latchkey
