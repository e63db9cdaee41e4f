// Operator actions on the members of a dead letter: retry, resolve.
#include "api/body.hpp"
#include "api/handlers_dead_letters.hpp"
#include "api/resolution.hpp"
#include "wire/json_out.hpp"

namespace latchkey::api {
namespace {

constexpr std::size_t kNamedMax = 500;
constexpr std::size_t kProblemsMax = 100;

// The number of members by result, and the refusals to report.
struct Tally {
  std::uint64_t changed = 0, unchanged = 0, refused = 0;
  std::vector<MemberActionReply> problems;  // the first refused members

  void count(const MemberActionReply& member) {
    if (!member.refused) {
      (member.changed ? changed : unchanged) += 1;
      return;
    }
    refused += 1;
    if (problems.size() < kProblemsMax) problems.push_back(member);
  }
};

void send_tally(Answer& answer, const Tally& tally) {
  std::string text;
  wire::ObjectOut out(text);
  out.number("changed", static_cast<std::int64_t>(tally.changed));
  out.number("unchanged", static_cast<std::int64_t>(tally.unchanged));
  out.number("refused", static_cast<std::int64_t>(tally.refused));
  out.raw("problems", "[");
  for (const MemberActionReply& problem : tally.problems) {
    if (&problem != tally.problems.data()) text.push_back(',');
    wire::ObjectOut item(text);
    item.id("run", problem.run).word("code", facts(problem.refused->code).name).text("detail", problem.refused->detail);
    item.end();
  }
  text.push_back(']');
  out.end();
  answer.send_json(200, std::move(text));
}

// Works in slices, one transaction each, so that other writes run in between. After an error the caller may repeat the
// request: members that have the requested state are not changed again.
void move_members(DeadLetterContext& context, DeadLetterActionRequest action, Answer& answer) {
  Tally tally;
  do {
    const auto moved = context.store.act_on_dead_letter(action);
    if (!moved) return answer.send_error(moved.error());
    if (!*moved) return answer.send_error({Code::NOT_FOUND, ""});
    for (const MemberActionReply& member : (*moved)->members) {
      tally.count(member);
      if (member.changed) context.waiters.notify(member.run);
    }
    action.cursor = (*moved)->next;
  } while (!action.cursor.empty());
  send_tally(answer, tally);
}

void start_moving(DeadLetterContext& context, Call call, std::vector<RunId> runs, Move move, std::string note) {
  auto tenant = call.find_tenant("");
  if (!tenant) return call.answer.send_error(tenant.error());
  DeadLetterActionRequest action{.tenant = *std::move(tenant),
                    .dead_letter = id_of(call),
                    .runs = std::move(runs),
                    .move = std::move(move),
                    .by = call.principal->name,
                    .note = std::move(note)};
  do_later(call, [&context, action = std::move(action)](Answer& answer) { move_members(context, action, answer); });
}

wire::Fault read_runs(const wire::JsonValue& value, std::vector<RunId>& into) {
  std::vector<std::string> texts;
  if (auto fault = read_texts(value, texts)) return fault;
  if (texts.empty() || texts.size() > kNamedMax) return wrong_value(value, "1 to 500 ids, or absent for all members");
  for (const std::string& text : texts) {
    const auto id = parse_uuid(text);
    if (!id) return wrong_value(value, "an array of run ids");
    into.push_back(*id);
  }
  return std::nullopt;
}

struct LetterRetryBody {
  std::vector<RunId> runs;
  RetryByHand retry;
};
struct ResolveBody : Resolution {
  std::vector<RunId> runs;
};

constexpr std::array kLetterRetryMembers{
    wire::Member<LetterRetryBody>{"runs", [](auto& body, auto& value) { return read_runs(value, body.runs); }},
    wire::Member<LetterRetryBody>{
        "fresh_effect_key", [](auto& body, auto& value) { return read_flag(value, body.retry.fresh_effect_key); }},
};
constexpr auto& kResolution = kResolutionMembers<ResolveBody>;
constexpr std::array kResolveMembers{
    wire::Member<ResolveBody>{"runs", [](auto& body, auto& value) { return read_runs(value, body.runs); }},
    kResolution[0],
    kResolution[1],
    kResolution[2],
};

}  // namespace

void retry_dead_letter(DeadLetterContext& context, Call call) {
  auto body = read_body(call.request, kLetterRetryMembers);
  if (!body) return call.answer.send_error(body.error());
  start_moving(context, std::move(call), std::move(body->runs), body->retry, "");
}

void resolve_dead_letter(DeadLetterContext& context, Call call) {
  auto body = read_body(call.request, kResolveMembers);
  if (!body) return call.answer.send_error(body.error());
  auto move = make_move(*body, Rerun::refused);
  if (!move) return call.answer.send_error(move.error());
  start_moving(context, std::move(call), std::move(body->runs), *std::move(move), std::move(body->note));
}

}  // namespace latchkey::api
