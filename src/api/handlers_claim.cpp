#include "api/body.hpp"
#include "api/claim_request.hpp"
#include "api/handlers_runs.hpp"
#include "wire/claim_json.hpp"
#include "wire/json_out.hpp"
#include "wire/run_json.hpp"

namespace latchkey::api {
namespace {

// Writes the HTTP response for each reply to a claim.
struct ClaimReplyWriter {
  Answer answer;

  void operator()(const Won& won) {
    http::Response response{.status = 201, .content_type = "application/json"};
    response.header_lines.append("Location: /v1/runs/");
    wire::append_uuid(response.header_lines, won.run.id());
    response.header_lines.append(won.repeated ? "\r\nIdempotent-Replayed: true\r\n" : "\r\n");
    response.body.reserve(1024);
    wire::ObjectOut out(response.body);
    wire::append_run(out.member("run"), won.run, wire::Payloads::none);
    out.number("fence", static_cast<std::int64_t>(won.fence)).instant("lease_until", won.lease_until).end();
    answer.send(std::move(response));
  }
  void operator()(const Replay& replay) {
    http::Response response{.content_type = "application/json", .header_lines = "Idempotent-Replayed: true\r\n"};
    const Bytes& result = replay.run.as<Completed>()->result;
    response.body.reserve(1024 + result.size());
    wire::ObjectOut out(response.body);
    wire::append_run(out.flag("replayed", true).member("run"), replay.run, wire::Payloads::none);
    if (result.empty()) out.raw("result", "null");
    out.payload("result", result).end();
    answer.send(std::move(response));
  }
  void operator()(const Busy& busy) {
    refuse({busy.code, ""}, busy.run.id(),
           busy.code == Code::MOVE_REFUSED ? std::nullopt : std::optional(busy.retry_after));
  }
  void operator()(const NotDue& not_due) { refuse({Code::NOT_DUE, ""}, not_due.run.id(), not_due.retry_after); }
  void operator()(const InDoubtReply& doubted) { refuse({Code::OUTCOME_UNKNOWN, ""}, doubted.run.id(), std::nullopt); }
  void operator()(const Mismatch& mismatch) { refuse({Code::KEY_REUSED, ""}, mismatch.existing, std::nullopt); }

 private:
  void refuse(const Error& error, const RunId& existing, std::optional<Duration> retry_after) {
    std::string id = "\"";
    wire::append_uuid(id, existing);
    id.push_back('"');
    const http::ProblemMember member{"existing_run_id", std::move(id)};
    answer.send_problem(error, {&member, 1}, retry_after);
  }
};

}  // namespace

void claim_run(RunContext& context, Call call) {
  const auto parsed = parse_body(call.request);
  if (!parsed) return call.answer.send_error(parsed.error());
  auto body = wire::read_claim(*parsed);
  if (!body) return call.answer.send_error(body.error());
  auto tenant = find_tenant(*call.principal, call.request, body->tenant);
  if (!tenant) return call.answer.send_error(tenant.error());
  auto claim = make_claim(*std::move(body), tenant->value_or("default"), call.principal->token_id,
                          call.request.find("idempotency-key"), call.services.store.now());
  if (!claim) return call.answer.send_error(claim.error());
  if (claim->caller.empty()) claim->caller = call.principal->name;
  context.engine.claim(*std::move(claim),
                       [&services = call.services, answer = std::move(call.answer)](Result<ClaimReply> reply) mutable {
                         if (!reply) return answer.send_error(reply.error());
                         services.telemetry.count(*reply);
                         std::visit(ClaimReplyWriter{std::move(answer)}, *reply);
                       });
}

}  // namespace latchkey::api
