#include "api/claim_request.hpp"

#include <algorithm>
#include <cstring>

#include "keying/canonical_json.hpp"
#include "keying/key_hash.hpp"
#include "keying/lock_key.hpp"

namespace latchkey::api {
namespace {

constexpr std::size_t kCallNameMax = 255;
// A retry with the same Idempotency-Key still finds its claim this long after the bucket of its grain has ended. The
// span is at most one bucket.
constexpr Duration kKnownBeyondBucket = std::chrono::minutes{10};

Result<void> check_call_name(std::string_view name) {
  const bool printable = std::ranges::all_of(name, [](char c) { return c >= 0x20 && c < 0x7f; });
  if (name.empty() || name.size() > kCallNameMax || !printable)
    return fail(Code::INVALID_ARGUMENT, "Idempotency-Key must be 1 to 255 printable ASCII characters");
  return {};
}

// The id depends on the token: another token's call with the same Idempotency-Key is a different claim and must not
// receive this claim's fence.
ClaimId name_claim(std::string_view token, std::string_view tenant, std::string_view function,
                   std::string_view call_name) {
  const Digest digest =
      thread_sha256().add_prefixed(token).add_prefixed(tenant).add_prefixed(function).add_prefixed(call_name).finish();
  ClaimId id;
  std::memcpy(id.bytes.data(), digest.data(), id.bytes.size());
  return id;
}

wire::Fault find_key_parts_fault(const wire::ClaimBody& body) {
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
  std::string key;     // empty when the claim has no key
  std::string before;  // the key of the bucket that ended recently, for a call with an Idempotency-Key
};

Result<KeyTexts> build_key(const wire::ClaimBody& body, std::string_view tenant, bool named, Instant now) {
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

Result<KeyTexts> find_key(const wire::ClaimBody& body, std::string_view tenant,
                          std::optional<std::string_view> call_name, Instant now) {
  if (auto fault = find_key_parts_fault(body)) return std::unexpected(*std::move(fault));
  if (!body.grain.empty()) return build_key(body, tenant, call_name.has_value(), now);
  if (body.key) return KeyTexts{*body.key, {}};
  return KeyTexts{call_name ? "call:" + std::string(*call_name) : std::string(), {}};
}

// A claim whose key is built from a grain has no fingerprint by default.
Result<std::optional<Fingerprint>> find_fingerprint(const wire::ClaimBody& body, Guard guard) {
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

Result<ClaimRequest> make_claim(wire::ClaimBody body, std::string tenant, std::string_view token,
                                std::optional<std::string_view> call_name, Instant now) {
  if (body.function.empty()) return fail(Code::INVALID_ARGUMENT, "`function` is missing");
  if (call_name)
    if (const auto good = check_call_name(*call_name); !good) return std::unexpected(good.error());
  auto texts = find_key(body, tenant, call_name, now);
  if (!texts) return std::unexpected(std::move(texts.error()));
  std::string& key = texts->key;
  const Guard guard = body.guard.value_or(Guard::once);
  if (key.empty() && guard != Guard::none)
    return fail(
        Code::INVALID_ARGUMENT,
        "`key` is missing: send a `key`, a `grain` or an Idempotency-Key header, or `guard`: \"none\" for a run "
        "that no key guards");
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
