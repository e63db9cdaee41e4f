// Operator actions on a run: cancel, retry, resolve.
#include "api/body.hpp"
#include "api/handlers_runs.hpp"
#include "api/resolution.hpp"
#include "wire/run_json.hpp"

namespace latchkey::api {
namespace {

struct CancelBody {};

constexpr std::array<wire::Member<CancelBody>, 0> kCancelMembers{};

constexpr std::array kMoveRetryMembers{
    wire::Member<RetryByHand>{"fresh_effect_key",
                              [](auto& body, auto& value) { return read_flag(value, body.fresh_effect_key); }},
};

void act(RunContext& context, Call call, Move move) {
  auto tenant = find_tenant(*call.principal, call.request, "");
  if (!tenant) return call.answer.send_error(tenant.error());
  context.engine.move({*std::move(tenant), id_of(call), std::move(move)},
                      [&waiters = context.waiters, answer = std::move(call.answer)](Result<MoveReply> reply) mutable {
                        if (!reply) return answer.send_error(reply.error());
                        if (const auto* error = std::get_if<Error>(&*reply)) return answer.send_error(*error);
                        const Run& run = std::get<Moved>(*reply).run;
                        waiters.notify(run.id());
                        answer.send_json(200, wire::to_json(run, wire::Payloads::result));
                      });
}

}  // namespace

void cancel_run(RunContext& context, Call call) {
  if (const auto body = read_body(call.request, kCancelMembers); !body) return call.answer.send_error(body.error());
  act(context, std::move(call), CancelByHand{});
}

void retry_run(RunContext& context, Call call) {
  const auto body = read_body(call.request, kMoveRetryMembers);
  if (!body) return call.answer.send_error(body.error());
  act(context, std::move(call), *body);
}

void resolve_run(RunContext& context, Call call) {
  const auto body = read_body(call.request, kResolutionMembers<Resolution>);
  if (!body) return call.answer.send_error(body.error());
  if (!body->note.empty() && body->outcome != "failed")  // the run has no place for the note
    return call.answer.send_error({Code::INVALID_ARGUMENT, "`note` is allowed only with the outcome `failed`"});
  auto move = make_move(*body, Rerun::allowed);
  if (!move) return call.answer.send_error(move.error());
  act(context, std::move(call), *std::move(move));
}

}  // namespace latchkey::api
