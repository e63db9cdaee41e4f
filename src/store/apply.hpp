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

ClaimReply apply_claim(Applying with, const ClaimRequest& request);
EnqueueReply apply_enqueue(Applying with, const EnqueueRequest& request);
std::vector<Taken> apply_take(Applying with, const TakeRequest& request);
ExtendReply apply_extend(Applying with, const ExtendRequest& request);
SettleReply apply_settle(Applying with, const SettleRequest& request);
MoveReply apply_move(Applying with, const MoveRequest& request);
// apply_letters.cpp
std::optional<LetterMoved> apply_letter_move(Applying with, const LetterMove& wish);
Swept apply_sweep(Applying with, std::uint32_t limit);
Swept apply_purge(Applying with, const Retention& retention, std::uint32_t limit);

}  // namespace latchkey
