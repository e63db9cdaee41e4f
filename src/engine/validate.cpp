#include "engine/validate.hpp"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>

namespace latchkey {
namespace {

using Fault = std::optional<Error>;

Fault invalid(std::string detail) { return Error{Code::INVALID_ARGUMENT, std::move(detail)}; }

bool is_printable(std::string_view text) {
  return simdjson::validate_utf8(text.data(), text.size()) &&
         std::ranges::none_of(text, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

Fault find_text_fault(std::string_view name, std::string_view text, std::size_t bytes_max) {
  if (text.size() > bytes_max)
    return invalid(fmt::format("`{}` has {} bytes; at most {} are allowed", name, text.size(), bytes_max));
  if (!is_printable(text)) return invalid(fmt::format("`{}` must be UTF-8 without control characters", name));
  return std::nullopt;
}

Fault find_body_fault(std::string_view name, const Bytes& body) {
  if (body.size() <= kBodyBytesMax) return std::nullopt;
  return Error{Code::BODY_TOO_LARGE,
               fmt::format("`{}` has {} bytes; at most {} are allowed", name, body.size(), kBodyBytesMax)};
}

Fault find_span_fault(std::string_view name, Duration span, Duration least, Duration most) {
  if (least <= span && span <= most) return std::nullopt;
  return invalid(fmt::format("`{}` is {}; it must be {} to {}", name, format_duration(span), format_duration(least),
                             format_duration(most)));
}

Fault find_lease_fault(const std::optional<Duration>& lease) {
  return lease ? find_span_fault("lease_ms", *lease, kLeaseMin, kLeaseMax) : std::nullopt;
}

Fault find_retry_fault(const RetryPolicy& retry) {
  if (retry.retries > kRetriesMax)
    return invalid(fmt::format("`retry.retries` is {}; at most {} are allowed", retry.retries, kRetriesMax));
  if (retry.factor > kFactorMax) return invalid("`retry.factor` must be 0 to 1000");
  if (retry.jitter_percent > 100) return invalid("`retry.jitter_percent` must be 0 to 100");
  if (retry.schedule.size() > kScheduleMax) return invalid("`retry.schedule_ms` has more than 64 delays");
  for (const Duration delay : retry.schedule)
    if (auto fault = find_span_fault("retry.schedule_ms", delay, Duration{0}, kWindowMax)) return fault;
  if (auto fault = find_span_fault("retry.first_ms", retry.first, Duration{0}, kWindowMax)) return fault;
  if (auto fault = find_span_fault("retry.ceiling_ms", retry.ceiling, Duration{0}, kWindowMax)) return fault;
  if (retry.total != Duration::max()) return find_span_fault("retry.total_ms", retry.total, Duration{0}, kWindowMax);
  return std::nullopt;
}

// The first fault of several checks.
template <class... Faults>
Fault first_of(Faults... faults) {
  Fault found;
  ((found || !faults ? void() : void(found = std::move(faults))), ...);
  return found;
}

// Checks the members that claims and jobs have in common.
Fault find_common_fault(const auto& request) {
  return first_of(find_tenant_fault(request.tenant), find_function_fault(request.function),
                  request.key.empty() ? std::nullopt : find_key_fault(request.key),
                  find_text_fault("caller", request.caller, kKeyBytesMax), find_body_fault("input", request.input),
                  find_lease_fault(request.lease),
                  find_span_fault("window_ms", request.window, Duration{0}, kWindowMax),
                  find_retry_fault(request.retry));
}

Fault find_ending_fault(const Ending& ending) {
  if (const auto* complete = std::get_if<Complete>(&ending)) {
    if (auto fault = find_body_fault("result", complete->result)) return fault;
    for (EnqueueRequest follow_up : complete->follow_ups) {
      if (auto fault = find_fault(follow_up)) return fault;
    }
  }
  if (const auto* failing = std::get_if<Fail>(&ending)) {
    if (failing->retry_after && *failing->retry_after < Duration{0}) return invalid("`retry_after_ms` is negative");
    return first_of(find_body_fault("error.message", failing->message),
                    find_text_fault("error.code", failing->code, 128));
  }
  if (const auto* snooze = std::get_if<Snooze>(&ending))
    return find_span_fault("snooze_ms", snooze->span, Duration{0}, kWindowMax);
  return std::nullopt;
}

}  // namespace

Fault find_tenant_fault(std::string_view tenant) {
  const auto allowed = [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-';
  };
  if (tenant.empty() || tenant.size() > kNameBytesMax || !std::ranges::all_of(tenant, allowed))
    return invalid("`tenant` must be 1 to 128 of letters, digits, '.', '_' and '-'");
  return std::nullopt;
}

Fault find_function_fault(std::string_view function) {
  if (function.empty()) return invalid("`function` is missing");
  return find_text_fault("function", function, kNameBytesMax);
}

Fault find_key_fault(std::string_view key) {
  if (key.empty()) return invalid("`key` is empty");
  return find_text_fault("key", key, kKeyBytesMax);
}

Fault find_filter_fault(std::string_view function, std::string_view key) {
  return first_of(find_text_fault("function", function, kNameBytesMax), find_text_fault("key", key, kKeyBytesMax));
}

Fault find_name_fault(std::string_view name) { return find_text_fault("name", name, kNameBytesMax); }

Fault find_fault(const ClaimRequest& request) { return find_common_fault(request); }

Fault find_fault(const EnqueueRequest& request) {
  if (auto fault = find_common_fault(request)) return fault;
  if (request.priority < -100 || request.priority > 100)
    return invalid(fmt::format("`priority` is {}; it must be -100 to 100", request.priority));
  if (request.after.size() > kAfterMax)
    return invalid(fmt::format("`after` names {} runs; at most {} are allowed", request.after.size(), kAfterMax));
  return find_span_fault("delay", request.delay, Duration{0}, kWindowMax);
}

Fault find_fault(const TakeRequest& request) {
  if (request.functions.empty()) return invalid("`functions` is empty");
  if (request.limit == 0 || request.limit > 1000) return invalid("`limit` must be 1 to 1000");
  for (const std::string& function : request.functions)
    if (auto fault = find_function_fault(function)) return fault;
  if (request.tenant)
    if (auto fault = find_tenant_fault(*request.tenant)) return fault;
  return find_lease_fault(request.lease);
}

Fault find_fault(const ExtendRequest& request) { return find_lease_fault(request.lease); }
Fault find_fault(const SettleRequest& request) { return find_ending_fault(request.ending); }

Fault find_fault(const MoveRequest& request) {
  if (const auto* resolve = std::get_if<ResolveCompleted>(&request.move))
    return find_body_fault("result", resolve->result);
  if (const auto* resolve = std::get_if<ResolveFailed>(&request.move)) return find_body_fault("note", resolve->note);
  return std::nullopt;
}

}  // namespace latchkey
