// Retry policies as config members, and the policies that have a name (api, background, webhook, scheduled). Pure.
#pragma once

#include <optional>
#include <string_view>

#include "config/members.hpp"
#include "model/retry_policy.hpp"

namespace latchkey::config {

std::optional<RetryPolicy> find_retry_kind(std::string_view name);

void describe(Members& members, RetryPolicy& retry);
// The member `retry`: a policy's members, or the name of one.
Object retry_member(std::optional<RetryPolicy>& retry);

}  // namespace latchkey::config
