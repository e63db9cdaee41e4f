#include "api/claim_json.hpp"

#include <algorithm>
#include <cstring>

#include "base/hex.hpp"
#include "engine/validate.hpp"
#include "keying/canonical_json.hpp"
#include "keying/key_hash.hpp"
#include "keying/lock_key.hpp"

namespace latchkey::api {
namespace {

constexpr std::size_t kCallNameMax = 255;
// How long a call is known by its name after its grain's bucket has passed; at most one bucket.
constexpr Duration kKnownBeyondBucket = std::chrono::minutes{10};

// The policy, and which of its members were said.
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
    return wrong("`retry.jitter_percent` goes with the jitter `percent` alone");
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

constexpr std::array kMembers{
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

Result<void> check_call_name(std::string_view name) {
  const bool printable = std::ranges::all_of(name, [](char c) { return c >= 0x20 && c < 0x7f; });
  if (name.empty() || name.size() > kCallNameMax || !printable)
    return fail(Code::INVALID_ARGUMENT, "Idempotency-Key must be 1 to 255 printable ASCII characters");
  return {};
}

// Of one token: what another one calls the same is another call, and does not get this one's fence.
ClaimId name_claim(std::string_view token, std::string_view tenant, std::string_view function,
                   std::string_view call_name) {
  const Digest digest =
      thread_sha256().add_prefixed(token).add_prefixed(tenant).add_prefixed(function).add_prefixed(call_name).finish();
  ClaimId id;
  std::memcpy(id.bytes.data(), digest.data(), id.bytes.size());
  return id;
}

Fault find_key_parts_fault(const ClaimBody& body) {
  const auto wrong = [](const char* detail) { return Error{Code::INVALID_ARGUMENT, detail}; };
  if (body.key && !body.grain.empty()) return wrong("send `key` or `grain`, not both");
  if (body.key && body.key->empty()) return wrong("`key` is empty");
  if (!body.grain.empty()) return std::nullopt;
  if (body.entity) return wrong("`entity` needs `grain`");
  if (!body.time_zone.empty()) return wrong("`time_zone` needs `grain`");
  if (body.at) return wrong("`at` needs `grain`");
  return std::nullopt;
}

struct KeyTexts {
  std::string key;     // empty: the claim has none
  std::string before;  // what a named call's key was a moment ago, if that was another
};

Result<KeyTexts> build_key(const ClaimBody& body, std::string_view tenant, bool named, Instant now) {
  const auto grain = parse_grain(body.grain);
  if (!grain) return std::unexpected(grain.error());
  LockKeyRequest request{.function = body.function, .tenant = tenant, .grain = *grain, .at = body.at.value_or(now)};
  if (!body.time_zone.empty()) request.time_zone = body.time_zone;
  request.entities = body.entity;
  auto key = compute_lock_key(request);
  if (!key) return std::unexpected(std::move(key.error()));
  KeyTexts texts{*std::move(key), {}};
  if (!named || body.at) return texts;
  const Duration bucket = std::chrono::minutes{grain->minutes};
  request.at = now - (grain->unit == Grain::Unit::MINUTES ? std::min(bucket, kKnownBeyondBucket) : kKnownBeyondBucket);
  auto before = compute_lock_key(request);
  if (before && *before != texts.key) texts.before = *std::move(before);
  return texts;
}

Result<KeyTexts> find_key(const ClaimBody& body, std::string_view tenant, std::optional<std::string_view> call_name,
                          Instant now) {
  if (auto fault = find_key_parts_fault(body)) return std::unexpected(*std::move(fault));
  if (!body.grain.empty()) return build_key(body, tenant, call_name.has_value(), now);
  if (body.key) return KeyTexts{*body.key, {}};
  return KeyTexts{call_name ? "call:" + std::string(*call_name) : std::string(), {}};
}

// A key that was built, not given, has no fingerprint.
Result<std::optional<Fingerprint>> find_fingerprint(const ClaimBody& body, Guard guard) {
  if (!body.fingerprinted || guard != Guard::once) return std::nullopt;
  if (body.fingerprint) return body.fingerprint;
  if (!body.grain.empty()) return std::nullopt;
  static const Fingerprint kOfNull = sha256("null");
  if (body.input.empty()) return kOfNull;
  auto computed = compute_fingerprint(body.input);
  if (!computed) return fail(computed.error().code, "`input`: " + computed.error().detail);
  return *computed;
}

}  // namespace

Result<ClaimBody> read_claim(const http::Request& request) { return read_body(request, kMembers); }

Result<ClaimRequest> make_claim(ClaimBody body, std::string tenant, std::string_view token,
                                std::optional<std::string_view> call_name, Instant now) {
  if (body.function.empty()) return fail(Code::INVALID_ARGUMENT, "`function` is missing");
  if (call_name)
    if (const auto good = check_call_name(*call_name); !good) return std::unexpected(good.error());
  auto texts = find_key(body, tenant, call_name, now);
  if (!texts) return std::unexpected(std::move(texts.error()));
  std::string& key = texts->key;
  const Guard guard = body.guard.value_or(key.empty() ? Guard::none : Guard::once);
  if (key.empty() && guard != Guard::none)
    return fail(Code::INVALID_ARGUMENT, "`guard` needs a `key`, a `grain` or an Idempotency-Key header");
  auto fingerprint = find_fingerprint(body, guard);
  if (!fingerprint) return std::unexpected(std::move(fingerprint.error()));
  ClaimRequest claim;
  if (call_name) claim.claim = name_claim(token, tenant, body.function, *call_name);
  if (!key.empty()) claim.key_hash = compute_key_hash(tenant, body.function, key);
  if (!texts->before.empty()) {
    claim.key_before_hash = compute_key_hash(tenant, body.function, texts->before);
    claim.key_before = std::move(texts->before);
  }
  claim.tenant = std::move(tenant);
  claim.function = std::move(body.function);
  claim.key = std::move(key);
  claim.guard = guard;
  claim.on_doubt = body.on_doubt;
  claim.fingerprint = *fingerprint;
  claim.retry = body.retry;
  claim.window = body.window;
  claim.lease = body.lease;
  claim.input = std::move(body.input);
  claim.caller = std::move(body.caller);
  return claim;
}

}  // namespace latchkey::api
