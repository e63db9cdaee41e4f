// The requests of an owner about its attempt: heartbeat, complete, fail, release.
#include "api/body.hpp"
#include "api/handlers_runs.hpp"
#include "wire/json_out.hpp"
#include "wire/run_json.hpp"

namespace latchkey::api {
namespace {

constexpr std::size_t kProgressMax = 4096;

struct HeartbeatBody {
  std::uint64_t fence = 0;
  std::optional<Duration> lease;
  std::string progress;  // as sent; empty when absent
};
struct CompleteBody {
  std::uint64_t fence = 0;
  std::string result;
  bool has_follow_ups = false;
};
struct FailBody {
  std::uint64_t fence = 0;
  bool has_error = false;
  bool has_message = false;
  Fail ending;
};
struct ReleaseBody {
  std::uint64_t fence = 0;
  std::optional<Duration> snooze;
};

// No owner has the fence 0.
wire::Fault read_fence(const wire::JsonValue& value, std::uint64_t& into) {
  if (auto fault = read_number(value, into)) return fault;
  if (into == 0) return wrong_value(value, "the fence from the reply to the claim");
  return std::nullopt;
}

wire::Fault read_progress(HeartbeatBody& body, const wire::JsonValue& value) {
  if (value.raw.size() > kProgressMax) return wrong_value(value, "JSON of at most 4096 bytes");
  body.progress = value.raw;
  return std::nullopt;
}

constexpr std::array kHeartbeatMembers{
    wire::Member<HeartbeatBody>{"fence", [](auto& body, auto& value) { return read_fence(value, body.fence); }},
    wire::Member<HeartbeatBody>{"lease_ms", [](auto& body, auto& value) { return read_ms(value, body.lease); }},
    wire::Member<HeartbeatBody>{"progress", read_progress},
};

wire::Fault read_follow_ups(CompleteBody& body, const wire::JsonValue& value) {
  simdjson::dom::array array;
  if (value.element.get(array) != simdjson::SUCCESS) return wrong_value(value, "an array");
  body.has_follow_ups = array.begin() != array.end();
  return std::nullopt;
}

constexpr std::array kCompleteMembers{
    wire::Member<CompleteBody>{"fence", [](auto& body, auto& value) { return read_fence(value, body.fence); }},
    wire::Member<CompleteBody>{"result",
                               [](auto& body, auto& value) {
                                 body.result = value.raw;
                                 return wire::Fault{};
                               }},
    wire::Member<CompleteBody>{"follow_ups", read_follow_ups},
};

constexpr std::array kErrorMembers{
    wire::Member<FailBody>{"message",
                           [](auto& body, auto& value) {
                             body.has_message = true;
                             return read_text(value, body.ending.message);
                           }},
    wire::Member<FailBody>{"code", [](auto& body, auto& value) { return read_text(value, body.ending.code); }},
    wire::Member<FailBody>{"retryable",
                           [](auto& body, auto& value) { return read_flag(value, body.ending.retryable); }},
    wire::Member<FailBody>{"outcome_unknown",
                           [](auto& body, auto& value) { return read_flag(value, body.ending.outcome_unknown); }},
    wire::Member<FailBody>{"retry_after_ms",
                           [](auto& body, auto& value) { return read_ms(value, body.ending.retry_after); }},
};

constexpr std::array kFailMembers{
    wire::Member<FailBody>{"fence", [](auto& body, auto& value) { return read_fence(value, body.fence); }},
    wire::Member<FailBody>{"error",
                           [](auto& body, auto& value) {
                             body.has_error = true;
                             return wire::read_nested(value, body, kErrorMembers);
                           }},
};

constexpr std::array kReleaseMembers{
    wire::Member<ReleaseBody>{"fence", [](auto& body, auto& value) { return read_fence(value, body.fence); }},
    wire::Member<ReleaseBody>{"snooze_ms", [](auto& body, auto& value) { return read_ms(value, body.snooze); }},
};

// Reads a body that must have a fence. Otherwise it sends the error and returns none.
template <class Body, std::size_t N>
std::optional<Body> read_fenced(Call& call, const std::array<wire::Member<Body>, N>& members) {
  auto body = read_body(call.request, members);
  if (body && body->fence == 0) body = fail(Code::INVALID_ARGUMENT, "`fence` is missing");
  if (!body) {
    call.answer.send_error(body.error());
    return std::nullopt;
  }
  return *std::move(body);
}

// Settles the run in the path. `respond(answer, settled)` sends the reply when the settle was accepted.
template <class Respond>
void settle(RunContext& context, Call call, std::uint64_t fence, Ending ending, Respond respond) {
  auto tenant = find_tenant(*call.principal, call.request, "");
  if (!tenant) return call.answer.send_error(tenant.error());
  const std::size_t kind = ending.index();
  std::vector<SettleRequest> requests;
  requests.push_back({*std::move(tenant), id_of(call), Fence{fence}, std::move(ending)});
  context.engine.settle(std::move(requests),
                        [&context, &telemetry = call.services.telemetry, kind, answer = std::move(call.answer),
                         respond](Result<std::vector<SettleReply>> replies) mutable {
                          if (!replies) return answer.send_error(replies.error());
                          const SettleReply& reply = replies->front();
                          if (const auto* error = std::get_if<Error>(&reply)) {
                            telemetry.count_refused_settle(error->code);
                            return answer.send_error(*error);
                          }
                          const auto& settled = std::get<Settled>(reply);
                          if (settled.changed) telemetry.count_settled(kind);
                          context.waiters.notify(settled.run.id());
                          respond(answer, settled);
                        });
}

void send_run(Answer& answer, const Settled& settled) {
  answer.send_json(200, wire::to_json(settled.run, wire::Payloads::result));
}

void send_failure(Answer& answer, const Settled& settled) {
  std::string text;
  text.reserve(1024);
  wire::ObjectOut out(text);
  wire::append_run(out.member("run"), settled.run, wire::Payloads::none);
  if (const auto* queued = settled.run.as<Queued>()) out.instant("retry_at", queued->due_at);
  if (settled.dead_letter) out.id("dead_letter_id", *settled.dead_letter);
  out.end();
  answer.send_json(200, std::move(text));
}

}  // namespace

void extend_run(RunContext& context, Call call) {
  auto body = read_fenced(call, kHeartbeatMembers);
  if (!body) return;
  auto tenant = find_tenant(*call.principal, call.request, "");
  if (!tenant) return call.answer.send_error(tenant.error());
  std::vector<ExtendRequest> requests;
  requests.push_back({*std::move(tenant), id_of(call), Fence{body->fence}, body->lease});
  context.engine.extend(std::move(requests),
                        [&context, &telemetry = call.services.telemetry, id = id_of(call), body = *std::move(body),
                         answer = std::move(call.answer)](Result<std::vector<ExtendReply>> replies) mutable {
                          if (!replies) return answer.send_error(replies.error());
                          if (const auto* error = std::get_if<Error>(&replies->front()))
                            return answer.send_error(*error);
                          const auto& extended = std::get<Extended>(replies->front());
                          telemetry.count_heartbeat();
                          if (!body.progress.empty())
                            context.engine.note_progress(id, Fence{body.fence}, std::move(body.progress));
                          std::string text;
                          wire::ObjectOut out(text);
                          out.instant("lease_until", extended.lease_until);
                          if (extended.cancel_requested) out.flag("cancel", true);
                          out.end();
                          answer.send_json(200, std::move(text));
                        });
}

void complete_run(RunContext& context, Call call) {
  auto body = read_fenced(call, kCompleteMembers);
  if (!body) return;
  if (body->has_follow_ups)
    return call.answer.send_error({Code::FUNCTION_UNKNOWN, "`follow_ups` name functions that are not registered"});
  settle(context, std::move(call), body->fence, Complete{std::move(body->result), {}}, send_run);
}

void fail_run(RunContext& context, Call call) {
  auto body = read_fenced(call, kFailMembers);
  if (!body) return;
  if (!body->has_error || !body->has_message)
    return call.answer.send_error(
        {Code::INVALID_ARGUMENT, body->has_error ? "`error.message` is missing" : "`error` is missing"});
  settle(context, std::move(call), body->fence, std::move(body->ending), send_failure);
}

void release_run(RunContext& context, Call call) {
  const auto body = read_fenced(call, kReleaseMembers);
  if (!body) return;
  settle(context, std::move(call), body->fence, body->snooze ? Ending{Snooze{*body->snooze}} : Ending{Release{}},
         send_run);
}

}  // namespace latchkey::api
