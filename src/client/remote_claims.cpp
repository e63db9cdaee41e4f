#include "client/remote_claims.hpp"

#include <fmt/format.h>

#include "base/hex.hpp"
#include "wire/run_reader.hpp"

namespace latchkey {
namespace {

std::string_view to_string(Jitter jitter) {
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
  return fmt::format(R"({{"retries":{},{}{},"jitter":"{}"{}}})", retry.retries, delays, total, to_string(retry.jitter),
                     percent);
}

std::string write_claim(const ClaimRequest& request) {
  const std::string fingerprint = request.fingerprint ? wire::quote(to_hex(*request.fingerprint)) : "null";
  return fmt::format(
      R"({{"function":{},"tenant":{},"key":{},"guard":"{}","lease_ms":{},"window_ms":{},"on_doubt":"{}","retry":{},"caller":{},"fingerprint":{}}})",
      wire::quote(request.function), wire::quote(request.tenant), wire::quote(request.key),
      latchkey::to_string(request.guard), request.lease.count(), request.window.count(),
      latchkey::to_string(request.on_doubt), write_retry(request.retry), wire::quote(request.caller), fingerprint);
}

std::string write_fail(Fence fence, const Fail& fail) {
  const std::string code = fail.code.empty() ? std::string() : fmt::format(R"(,"code":{})", wire::quote(fail.code));
  const std::string after =
      fail.retry_after ? fmt::format(R"(,"retry_after_ms":{})", fail.retry_after->count()) : std::string();
  return fmt::format(R"({{"fence":{},"error":{{"message":{}{},"retryable":{},"outcome_unknown":{}{}}}}})",
                     static_cast<std::uint64_t>(fence), wire::quote(fail.message), code, fail.retryable,
                     fail.outcome_unknown, after);
}

// A run of which only the id is known.
Run stub(RunId id) {
  auto head = std::make_shared<RunHead>();
  head->id = id;
  Run run;
  run.head = std::move(head);
  return run;
}

Result<ClaimReply> read_won(const ServerReply& reply) {
  const auto object = wire::member(reply.body, "run");
  if (!object) return fail(Code::REPLY_LOST, "the server's answer has no run in it");
  auto run = wire::read_run(*object);
  if (!run) return std::unexpected(run.error());
  const Fence fence{wire::number(reply.body, "fence")};
  const Instant lease_until = wire::instant(reply.body, "lease_until").value_or(Instant{});
  return ClaimReply{Won{*std::move(run), fence, lease_until}};
}

Result<ClaimReply> read_replay(const ServerReply& reply) {
  const auto object = wire::member(reply.body, "run");
  if (!object) return fail(Code::REPLY_LOST, "the server's answer has no run in it");
  auto run = wire::read_run(*object);
  if (!run) return std::unexpected(run.error());
  if (auto* done = std::get_if<Completed>(&run->state))
    if (const auto result = wire::member(reply.body, "result")) done->result = simdjson::minify(*result);
  return ClaimReply{Replay{*std::move(run)}};
}

Result<ClaimReply> read_refusal(const ServerReply& reply) {
  const Error error = reply.error();
  const auto existing = parse_uuid(wire::text(reply.body, "existing_run_id")).value_or(Uuid{});
  const Duration retry_after = reply.retry_after.value_or(std::chrono::seconds{1});
  switch (error.code) {
    case Code::ALREADY_RUNNING:
    case Code::ALREADY_QUEUED:
    case Code::MOVE_REFUSED:
      return ClaimReply{Busy{stub(existing), error.code, retry_after}};
    case Code::NOT_DUE:
      return ClaimReply{NotDue{stub(existing), retry_after}};
    case Code::OUTCOME_UNKNOWN:
      return ClaimReply{InDoubtReply{stub(existing)}};
    case Code::KEY_REUSED:
      return ClaimReply{Mismatch{existing}};
    default:
      return std::unexpected(error);
  }
}

bool is_about_the_run(Code code) {
  return code == Code::LEASE_LOST || code == Code::NOT_FOUND || code == Code::ALREADY_SETTLED;
}

std::string path_of(RunId id, const char* verb) { return fmt::format("/v1/runs/{}/{}", to_string(id), verb); }

struct SettleCall {
  RunId id;
  Fence fence;

  std::pair<std::string, std::string> operator()(const Complete& complete) const {
    const std::string result = complete.result.empty() ? "null" : complete.result;
    return {path_of(id, "complete"), fmt::format(R"({{"fence":{},"result":{}}})", number(), result)};
  }
  std::pair<std::string, std::string> operator()(const Fail& fail) const {
    return {path_of(id, "fail"), write_fail(fence, fail)};
  }
  std::pair<std::string, std::string> operator()(const Release&) const {
    return {path_of(id, "release"), fmt::format(R"({{"fence":{}}})", number())};
  }
  std::pair<std::string, std::string> operator()(const Snooze& snooze) const {
    return {path_of(id, "release"), fmt::format(R"({{"fence":{},"snooze_ms":{}}})", number(), snooze.span.count())};
  }
  std::uint64_t number() const { return static_cast<std::uint64_t>(fence); }
};

}  // namespace

Result<ServerReply> RemoteClaims::call(const std::string& target, const std::string& body,
                                       std::vector<http::ClientHeader> headers) {
  return server_.call("POST", target, body, std::move(headers));
}

Result<ClaimReply> RemoteClaims::claim(const ClaimRequest& request) {
  const auto reply = call("/v1/runs", write_claim(request), {{"Idempotency-Key", to_string(request.claim)}});
  if (!reply) return std::unexpected(reply.error());
  if (reply->status == 201) return read_won(*reply);
  if (reply->is_good()) return read_replay(*reply);
  return read_refusal(*reply);
}

Result<ExtendReply> RemoteClaims::extend_one(const ExtendRequest& request) {
  const std::string lease = request.lease ? fmt::format(R"(,"lease_ms":{})", request.lease->count()) : std::string();
  const auto reply = call(path_of(request.id, "heartbeat"),
                          fmt::format(R"({{"fence":{}{}}})", static_cast<std::uint64_t>(request.fence), lease));
  if (!reply) return std::unexpected(reply.error());
  if (!reply->is_good()) {
    Error error = reply->error();
    if (!is_about_the_run(error.code)) return std::unexpected(std::move(error));
    return ExtendReply{std::move(error)};
  }
  bool cancel = false;
  if (reply->body["cancel"].get(cancel) != simdjson::SUCCESS) cancel = false;
  return ExtendReply{Extended{wire::instant(reply->body, "lease_until").value_or(Instant{}), cancel}};
}

Result<SettleReply> RemoteClaims::settle_one(const SettleRequest& request) {
  const auto [target, body] = std::visit(SettleCall{request.id, request.fence}, request.ending);
  const auto reply = call(target, body);
  if (!reply) return std::unexpected(reply.error());
  if (!reply->is_good()) {
    Error error = reply->error();
    if (!is_about_the_run(error.code)) return std::unexpected(std::move(error));
    return SettleReply{std::move(error)};
  }
  auto run = wire::read_run(wire::member(reply->body, "run").value_or(reply->body));
  if (!run) return std::unexpected(run.error());
  // The wire does not say why it is queued, but we know what we asked for.
  if (auto* queued = std::get_if<Queued>(&run->state)) {
    const auto* failed = std::get_if<Fail>(&request.ending);
    queued->by = !failed ? QueuedBy::release : failed->outcome_unknown ? QueuedBy::doubtful_try : QueuedBy::failed_try;
  }
  return SettleReply{Settled{*std::move(run), true, parse_uuid(wire::text(reply->body, "dead_letter_id"))}};
}

Result<std::vector<ExtendReply>> RemoteClaims::extend(const std::vector<ExtendRequest>& requests) {
  std::vector<ExtendReply> replies;
  for (const ExtendRequest& request : requests) {
    auto reply = extend_one(request);
    if (!reply) return std::unexpected(reply.error());
    replies.push_back(*std::move(reply));
  }
  return replies;
}

Result<std::vector<SettleReply>> RemoteClaims::settle(const std::vector<SettleRequest>& requests) {
  std::vector<SettleReply> replies;
  for (const SettleRequest& request : requests) {
    auto reply = settle_one(request);
    if (!reply) return std::unexpected(reply.error());
    replies.push_back(*std::move(reply));
  }
  return replies;
}

}  // namespace latchkey
