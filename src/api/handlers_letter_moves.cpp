// What a person does about a dead letter's members: retry, resolve.
#include "api/body.hpp"
#include "api/handlers_dead_letters.hpp"
#include "api/resolution.hpp"
#include "wire/json_out.hpp"

namespace latchkey::api {
namespace {

constexpr std::size_t kNamedMax = 500;
constexpr std::size_t kProblemsMax = 100;

// What became of the members of an entry.
struct Tally {
  std::uint64_t changed = 0, unchanged = 0, refused = 0;
  std::vector<MemberActionReply> problems;  // the first of those refused

  void count(const MemberActionReply& member) {
    if (!member.refused) {
      (member.changed ? changed : unchanged) += 1;
      return;
    }
    refused += 1;
    if (problems.size() < kProblemsMax) problems.push_back(member);
  }
};

void tell_tally(Answer& answer, const Tally& tally) {
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

// In slices, so that other writes go in between; each slice is a transaction. Broken off, it is simply asked for again.
void move_members(DeadLetterContext& context, DeadLetterActionRequest wish, Answer& answer) {
  Tally tally;
  do {
    const auto moved = context.store.act_on_dead_letter(wish);
    if (!moved) return answer.send_error(moved.error());
    if (!*moved) return answer.send_error({Code::NOT_FOUND, ""});
    for (const MemberActionReply& member : (*moved)->members) {
      tally.count(member);
      if (member.changed) context.waiters.notify(member.run);
    }
    wish.cursor = (*moved)->next;
  } while (!wish.cursor.empty());
  tell_tally(answer, tally);
}

void start_moving(DeadLetterContext& context, Call call, std::vector<RunId> runs, Move move, std::string note) {
  auto tenant = call.find_tenant("");
  if (!tenant) return call.answer.send_error(tenant.error());
  DeadLetterActionRequest wish{.tenant = *std::move(tenant),
                               .dead_letter = id_of(call),
                               .runs = std::move(runs),
                               .move = std::move(move),
                               .by = call.principal->name,
                               .note = std::move(note)};
  do_later(call, [&context, wish = std::move(wish)](Answer& answer) { move_members(context, wish, answer); });
}

wire::Fault read_runs(const wire::JsonValue& value, std::vector<RunId>& into) {
  std::vector<std::string> texts;
  if (auto fault = read_texts(value, texts)) return fault;
  if (texts.empty() || texts.size() > kNamedMax) return wrong_value(value, "1 to 500 ids; leave it out to name all");
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
constexpr auto& kSaid = kResolutionMembers<ResolveBody>;
constexpr std::array kResolveMembers{
    wire::Member<ResolveBody>{"runs", [](auto& body, auto& value) { return read_runs(value, body.runs); }},
    kSaid[0],
    kSaid[1],
    kSaid[2],
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
