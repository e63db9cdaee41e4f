// The limits of design.md §1: what a request may hold. INVALID_ARGUMENT, or BODY_TOO_LARGE for sizes of bodies; the
// detail names the member as it is called on the wire. None: it is good.
#pragma once

#include <optional>

#include "base/error.hpp"
#include "model/requests.hpp"

namespace latchkey {

inline constexpr std::size_t kKeyBytesMax = 512;
inline constexpr std::size_t kNameBytesMax = 128;
inline constexpr std::size_t kBodyBytesMax = 1024 * 1024;
inline constexpr Duration kLeaseMin = std::chrono::seconds{1};
inline constexpr Duration kLeaseMax = std::chrono::hours{24};
inline constexpr Duration kWindowMax = std::chrono::hours{24 * 3653};
inline constexpr std::uint32_t kRetriesMax = 1000;
inline constexpr std::uint32_t kFactorMax = 1000;
inline constexpr std::size_t kScheduleMax = 64;
inline constexpr std::size_t kAfterMax = 1000;

std::optional<Error> find_fault(const ClaimRequest& request);
std::optional<Error> find_fault(const EnqueueRequest& request);
std::optional<Error> find_fault(const TakeRequest& request);
std::optional<Error> find_fault(const ExtendRequest& request);
std::optional<Error> find_fault(const SettleRequest& request);
std::optional<Error> find_fault(const MoveRequest& request);

std::optional<Error> find_tenant_fault(std::string_view tenant);
std::optional<Error> find_function_fault(std::string_view function);
std::optional<Error> find_key_fault(std::string_view key);
// Of what a list is asked for; empty: of any.
std::optional<Error> find_filter_fault(std::string_view function, std::string_view key);
// Of a token; it may be empty.
std::optional<Error> find_name_fault(std::string_view name);

}  // namespace latchkey
