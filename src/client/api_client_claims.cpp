#include "client/api_client.hpp"
#include "client/claim_calls.hpp"
#include "wire/run_reader.hpp"

namespace latchkey {
namespace {

// A run of which only the id is known: a refusal contains no more.
Run stub(RunId id) {
  auto head = std::make_shared<RunHead>();
  head->id = id;
  Run run;
  run.head = std::move(head);
  return run;
}

Result<ClaimReply> read_won(const ServerReply& reply) {
  const auto object = wire::member(reply.body, "run");
  if (!object) return fail(Code::REPLY_LOST, "the server's reply contains no run");
  auto run = wire::read_run(*object);
  if (!run) return std::unexpected(run.error());
  const Fence fence{wire::number(reply.body, "fence")};
  const Instant lease_until = wire::instant(reply.body, "lease_until").value_or(Instant{});
  return ClaimReply{Won{*std::move(run), fence, lease_until}};
}

Result<ClaimReply> read_replay(const ServerReply& reply) {
  const auto object = wire::member(reply.body, "run");
  if (!object) return fail(Code::REPLY_LOST, "the server's reply contains no run");
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

}  // namespace

Result<ClaimReply> ApiClient::claim(const ClaimRequest& request) {
  const auto [target, body] = make_claim_call(request);
  const auto reply = server_.call("POST", target, body, {{"Idempotency-Key", to_string(request.claim)}});
  if (!reply) return std::unexpected(reply.error());
  if (reply->status == 201) return read_won(*reply);
  if (reply->is_good()) return read_replay(*reply);
  return read_refusal(*reply);
}

Result<ExtendReply> ApiClient::extend_one(const ExtendRequest& request) {
  const auto [target, body] = make_extend_call(request);
  const auto reply = server_.call("POST", target, body);
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

Result<SettleReply> ApiClient::settle_one(const SettleRequest& request) {
  const auto [target, body] = make_settle_call(request);
  const auto reply = server_.call("POST", target, body);
  if (!reply) return std::unexpected(reply.error());
  if (!reply->is_good()) {
    Error error = reply->error();
    if (!is_about_the_run(error.code)) return std::unexpected(std::move(error));
    return SettleReply{std::move(error)};
  }
  auto run = wire::read_run(wire::member(reply->body, "run").value_or(reply->body));
  if (!run) return std::unexpected(run.error());
  // The reply does not contain the reason why a run is queued; it follows from the request.
  if (auto* queued = std::get_if<Queued>(&run->state)) {
    const auto* failed = std::get_if<Fail>(&request.ending);
    queued->by = !failed                   ? QueuedBy::release
                 : failed->outcome_unknown ? QueuedBy::doubtful_attempt
                                           : QueuedBy::failed_attempt;
  }
  return SettleReply{Settled{*std::move(run), true, parse_uuid(wire::text(reply->body, "dead_letter_id"))}};
}

Result<std::vector<ExtendReply>> ApiClient::extend(const std::vector<ExtendRequest>& requests) {
  std::vector<ExtendReply> replies;
  for (const ExtendRequest& request : requests) {
    auto reply = extend_one(request);
    if (!reply) return std::unexpected(reply.error());
    replies.push_back(*std::move(reply));
  }
  return replies;
}

Result<std::vector<SettleReply>> ApiClient::settle(const std::vector<SettleRequest>& requests) {
  std::vector<SettleReply> replies;
  for (const SettleRequest& request : requests) {
    auto reply = settle_one(request);
    if (!reply) return std::unexpected(reply.error());
    replies.push_back(*std::move(reply));
  }
  return replies;
}

}  // namespace latchkey
