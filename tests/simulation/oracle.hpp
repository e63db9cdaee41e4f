// Oracle: the correct reply to a claim or an enqueue, from the repeat table. It does not use decide_*().
#pragma once

#include <optional>
#include <string>

#include "model/repeat_table.hpp"
#include "model/requests.hpp"

namespace latchkey::sim {

// The row of the repeat table for the key's latest run at `now`, for a request with this `on_doubt`.
KeyState classify(const std::optional<Run>& latest, OnDoubt asked, Instant now);
// The mistake in the reply; empty if it agrees with the table.
std::string find_wrong(const std::optional<Run>& latest, const ClaimRequest& request, const ClaimReply& reply,
                       Instant now);
std::string find_wrong(const std::optional<Run>& latest, const EnqueueRequest& request, const EnqueueReply& reply,
                       Instant now);

}  // namespace latchkey::sim
