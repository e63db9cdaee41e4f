#include "wire/claim_json.hpp"

#include <algorithm>

#include "base/hex.hpp"
#include "model/limits.hpp"

namespace latchkey::wire {
namespace {

// The policy, and which groups of its members the caller sent.
struct RetryBody {
  RetryPolicy policy;
  bool retries = false, growth = false, percent = false;
};

Fault read_jitter(RetryBody& body, const JsonValue& value) {
  constexpr std::array<std::string_view, 6> kNames{"none", "full", "equal", "additive", "decorrelated", "percent"};
  std::string text;
  if (auto fault = read_text(value, text)) return fault;
  const auto known = std::ranges::find(kNames, text);
  if (known == kNames.end()) return wrong_value(value, "none, full, equal, additive, decorrelated or percent");
  body.policy.jitter = static_cast<Jitter>(known - kNames.begin());
  return std::nullopt;
}

Fault read_schedule(RetryBody& body, const JsonValue& value) {
  simdjson::dom::array array;
  if (value.element.get(array) != simdjson::SUCCESS || array.size() == 0 || array.size() > kScheduleMax)
    return wrong_value(value, "an array of 1 to 64 delays");
  for (const auto& element : array)
    if (auto fault = read_ms({value.path, element, {}}, body.policy.schedule.emplace_back())) return fault;
  return std::nullopt;
}

constexpr std::array kRetryMembers{
    Member<RetryBody>{"retries",
                      [](auto& body, auto& value) {
                        body.retries = true;
                        return read_small_number(value, body.policy.retries, kRetriesMax);
                      }},
    Member<RetryBody>{"first_ms",
                      [](auto& body, auto& value) {
                        body.growth = true;
                        return read_ms(value, body.policy.first);
                      }},
    Member<RetryBody>{"factor",
                      [](auto& body, auto& value) {
                        body.growth = true;
                        return read_small_number(value, body.policy.factor, kFactorMax);
                      }},
    Member<RetryBody>{"ceiling_ms",
                      [](auto& body, auto& value) {
                        body.growth = true;
                        return read_ms(value, body.policy.ceiling);
                      }},
    Member<RetryBody>{"total_ms", [](auto& body, auto& value) { return read_ms(value, body.policy.total); }},
    Member<RetryBody>{"jitter", read_jitter},
    Member<RetryBody>{"jitter_percent",
                      [](auto& body, auto& value) {
                        body.percent = true;
                        return read_small_number(value, body.policy.jitter_percent, 100);
                      }},
    Member<RetryBody>{"schedule_ms", read_schedule},
};

Fault read_retry(RetryPolicy& into, const JsonValue& value) {
  RetryBody body;
  if (auto fault = read_nested(value, body, kRetryMembers)) return fault;
  const auto wrong = [](const char* detail) { return Error{Code::INVALID_ARGUMENT, detail}; };
  if (!body.policy.schedule.empty() && body.growth)
    return wrong("`retry.schedule_ms` says every delay: leave out `first_ms`, `factor` and `ceiling_ms`");
  if (body.percent && body.policy.jitter != Jitter::percent)
    return wrong("`retry.jitter_percent` is allowed only with the jitter `percent`");
  if (!body.policy.schedule.empty() && !body.retries)
    body.policy.retries = static_cast<std::uint32_t>(body.policy.schedule.size());
  into = std::move(body.policy);
  return std::nullopt;
}

Fault read_guard(ClaimBody& body, const JsonValue& value) {
  std::string text;
  if (auto fault = read_text(value, text)) return fault;
  body.guard = parse_guard(text);
  if (!body.guard) return wrong_value(value, "once, while-running or none");
  return std::nullopt;
}

Fault read_on_doubt(ClaimBody& body, const JsonValue& value) {
  std::string text;
  if (auto fault = read_text(value, text)) return fault;
  if (text == "probe") return wrong_value(value, "rerun or hold: a probe is part of a function's definition");
  if (text != "rerun" && text != "hold") return wrong_value(value, "rerun or hold");
  body.on_doubt = text == "hold" ? OnDoubt::hold : OnDoubt::rerun;
  return std::nullopt;
}

Fault read_at(ClaimBody& body, const JsonValue& value) {
  std::string text;
  if (auto fault = read_text(value, text)) return fault;
  const auto at = parse_rfc3339(text);
  if (!at) return wrong_value(value, "an RFC 3339 time such as 2026-02-06T10:00:00Z");
  body.at = *at;
  return std::nullopt;
}

Fault read_fingerprint(ClaimBody& body, const JsonValue& value) {
  if (value.element.is_null()) {
    body.fingerprinted = false;
    return std::nullopt;
  }
  std::string text;
  if (auto fault = read_text(value, text)) return fault;
  if (!from_hex(text, body.fingerprint.emplace())) return wrong_value(value, "64 hexadecimal digits, or null");
  return std::nullopt;
}

constexpr std::array kClaimMembers{
    Member<ClaimBody>{"function", [](auto& body, auto& value) { return read_text(value, body.function); }},
    Member<ClaimBody>{"key", [](auto& body, auto& value) { return read_text(value, body.key.emplace()); }},
    Member<ClaimBody>{"input",
                      [](auto& body, auto& value) {
                        body.input = value.raw;
                        return Fault{};
                      }},
    Member<ClaimBody>{"tenant", [](auto& body, auto& value) { return read_text(value, body.tenant); }},
    Member<ClaimBody>{"grain", [](auto& body, auto& value) { return read_text(value, body.grain); }},
    Member<ClaimBody>{"entity",
                      [](auto& body, auto& value) {
                        body.entity = value.raw;
                        return Fault{};
                      }},
    Member<ClaimBody>{"time_zone", [](auto& body, auto& value) { return read_text(value, body.time_zone); }},
    Member<ClaimBody>{"at", read_at},
    Member<ClaimBody>{"guard", read_guard},
    Member<ClaimBody>{"lease_ms", [](auto& body, auto& value) { return read_ms(value, body.lease); }},
    Member<ClaimBody>{"window_ms", [](auto& body, auto& value) { return read_ms(value, body.window); }},
    Member<ClaimBody>{"on_doubt", read_on_doubt},
    Member<ClaimBody>{"retry", [](auto& body, auto& value) { return read_retry(body.retry, value); }},
    Member<ClaimBody>{"caller", [](auto& body, auto& value) { return read_text(value, body.caller); }},
    Member<ClaimBody>{"fingerprint", read_fingerprint},
};

}  // namespace

Result<ClaimBody> read_claim(const JsonObject& body) { return read_members(body, kClaimMembers); }

}  // namespace latchkey::wire
