// Oracle: what a claim or an enqueue must be answered, read off the repeat table; knows nothing of decide_*().
#pragma once

#include <optional>
#include <string>

#include "model/repeat_table.hpp"
#include "model/requests.hpp"

namespace latchkey::sim {

// How the key's latest run stands at `now` for one who asks with this `on_doubt`.
KeyState classify(const std::optional<Run>& latest, OnDoubt asked, Instant now);
// What is wrong with the reply; empty when it is as the table says.
std::string find_wrong(const std::optional<Run>& latest, const ClaimRequest& request, const ClaimReply& reply,
                       Instant now);
std::string find_wrong(const std::optional<Run>& latest, const EnqueueRequest& request, const EnqueueReply& reply,
                       Instant now);

}  // namespace latchkey::sim
