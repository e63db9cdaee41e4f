// Checks requests against model/limits.hpp. The error is INVALID_ARGUMENT, or BODY_TOO_LARGE for payloads; its detail
// names the member as it is called in JSON. No error means that the request is valid.
#pragma once

#include <optional>

#include "base/error.hpp"
#include "model/limits.hpp"
#include "model/requests.hpp"

namespace latchkey {

std::optional<Error> find_fault(const ClaimRequest& request);
std::optional<Error> find_fault(const EnqueueRequest& request);
std::optional<Error> find_fault(const TakeRequest& request);
std::optional<Error> find_fault(const ExtendRequest& request);
std::optional<Error> find_fault(const SettleRequest& request);
std::optional<Error> find_fault(const MoveRequest& request);

std::optional<Error> find_tenant_fault(std::string_view tenant);
std::optional<Error> find_function_fault(std::string_view function);
std::optional<Error> find_key_fault(std::string_view key);
// For the filters of a list; an empty filter is valid.
std::optional<Error> find_filter_fault(std::string_view function, std::string_view key);
// For the name of a token; an empty name is valid.
std::optional<Error> find_name_fault(std::string_view name);

}  // namespace latchkey
