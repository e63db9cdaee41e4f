// Applies commands to tables: each function decides with model/decide.hpp, then writes. One function per verb of the
// store.
#pragma once

#include "base/random.hpp"
#include "store/tables.hpp"

namespace latchkey {

// The context of a command. `now` is the store's clock, read once per batch.
struct Applying {
  Tables& tables;
  Random& random;
  Instant now;
};

// The hash under which a request's run is looked up: of its key, or of its claim id if it has no guarded key. None
// where no run is looked up. For stores that read ahead.
std::optional<Digest> lookup_hash(const ClaimRequest& request);
std::optional<Digest> lookup_hash(const EnqueueRequest& request);

ClaimReply apply_claim(Applying with, const ClaimRequest& request);
EnqueueReply apply_enqueue(Applying with, const EnqueueRequest& request);
std::vector<Taken> apply_take(Applying with, const TakeRequest& request);
ExtendReply apply_extend(Applying with, const ExtendRequest& request);
SettleReply apply_settle(Applying with, const SettleRequest& request);
MoveReply apply_move(Applying with, const MoveRequest& request);
// apply_dead_letters.cpp
std::optional<DeadLetterActionReply> apply_dead_letter_action(Applying with, const DeadLetterActionRequest& request);
Swept apply_sweep(Applying with, std::uint32_t limit);
Swept apply_purge(Applying with, const Retention& retention, std::uint32_t limit);

}  // namespace latchkey
