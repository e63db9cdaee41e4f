#include "client/claim_calls.hpp"

#include <fmt/format.h>

#include "base/hex.hpp"
#include "wire/run_reader.hpp"

namespace latchkey {
namespace {

std::string_view name_of(Jitter jitter) {
  switch (jitter) {
    case Jitter::none:
      return "none";
    case Jitter::full:
      return "full";
    case Jitter::equal:
      return "equal";
    case Jitter::additive:
      return "additive";
    case Jitter::decorrelated:
      return "decorrelated";
    case Jitter::percent:
      return "percent";
  }
  return "none";
}

std::string write_retry(const RetryPolicy& retry) {
  const std::string total =
      retry.total == Duration::max() ? std::string() : fmt::format(R"(,"total_ms":{})", retry.total.count());
  std::string delays = fmt::format(R"("first_ms":{},"factor":{},"ceiling_ms":{})", retry.first.count(), retry.factor,
                                   retry.ceiling.count());
  if (!retry.schedule.empty()) {
    delays = R"("schedule_ms":[)";
    for (const Duration delay : retry.schedule)
      delays += fmt::format("{}{}", delays.back() == '[' ? "" : ",", delay.count());
    delays += "]";
  }
  const std::string percent =
      retry.jitter == Jitter::percent ? fmt::format(R"(,"jitter_percent":{})", retry.jitter_percent) : std::string();
  return fmt::format(R"({{"retries":{},{}{},"jitter":"{}"{}}})", retry.retries, delays, total, name_of(retry.jitter),
                     percent);
}

std::string write_claim(const ClaimRequest& request) {
  const std::string fingerprint = request.fingerprint ? wire::quote(to_hex(*request.fingerprint)) : "null";
  return fmt::format(
      R"({{"function":{},"tenant":{},"key":{},"guard":"{}","lease_ms":{},"window_ms":{},"on_doubt":"{}","retry":{},"caller":{},"fingerprint":{}}})",
      wire::quote(request.function), wire::quote(request.tenant), wire::quote(request.key), to_string(request.guard),
      request.lease.count(), request.window.count(), to_string(request.on_doubt), write_retry(request.retry),
      wire::quote(request.caller), fingerprint);
}

std::string write_fail(Fence fence, const Fail& fail) {
  const std::string code = fail.code.empty() ? std::string() : fmt::format(R"(,"code":{})", wire::quote(fail.code));
  const std::string after =
      fail.retry_after ? fmt::format(R"(,"retry_after_ms":{})", fail.retry_after->count()) : std::string();
  return fmt::format(R"({{"fence":{},"error":{{"message":{}{},"retryable":{},"outcome_unknown":{}{}}}}})",
                     static_cast<std::uint64_t>(fence), wire::quote(fail.message), code, fail.retryable,
                     fail.outcome_unknown, after);
}

std::string path_of(RunId id, std::string_view verb) { return fmt::format("/v1/runs/{}/{}", to_string(id), verb); }

struct SettleCall {
  RunId id;
  Fence fence;

  ApiCall operator()(const Complete& complete) const {
    const std::string result = complete.result.empty() ? "null" : complete.result;
    return {path_of(id, "complete"), fmt::format(R"({{"fence":{},"result":{}}})", number(), result)};
  }
  ApiCall operator()(const Fail& fail) const { return {path_of(id, "fail"), write_fail(fence, fail)}; }
  ApiCall operator()(const Release&) const {
    return {path_of(id, "release"), fmt::format(R"({{"fence":{}}})", number())};
  }
  ApiCall operator()(const Snooze& snooze) const {
    return {path_of(id, "release"), fmt::format(R"({{"fence":{},"snooze_ms":{}}})", number(), snooze.span.count())};
  }
  std::uint64_t number() const { return static_cast<std::uint64_t>(fence); }
};

}  // namespace

ApiCall make_claim_call(const ClaimRequest& request) { return {"/v1/runs", write_claim(request)}; }

ApiCall make_extend_call(const ExtendRequest& request) {
  const std::string lease = request.lease ? fmt::format(R"(,"lease_ms":{})", request.lease->count()) : std::string();
  return {path_of(request.id, "heartbeat"),
          fmt::format(R"({{"fence":{}{}}})", static_cast<std::uint64_t>(request.fence), lease)};
}

ApiCall make_settle_call(const SettleRequest& request) {
  return std::visit(SettleCall{request.id, request.fence}, request.ending);
}

}  // namespace latchkey
