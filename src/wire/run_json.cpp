#include "wire/run_json.hpp"

#include "model/window.hpp"
#include "wire/json_out.hpp"

namespace latchkey::wire {
namespace {

void write_failure(ObjectOut& out, Instant at, std::string_view code, Effect effect) {
  out.instant("settled_at", at).text("code", code).word("effect", to_string(effect));
}

// Writes the members that exist only in the run's current state.
struct WriteState {
  ObjectOut& out;
  const Run& run;

  void operator()(const Queued& queued) const {
    out.instant("due_at", queued.due_at);
    if (run.waiting_for > 0) out.number("waiting_for", run.waiting_for);
    if (run.failures > 0) out.number("failures", run.failures);
  }
  void operator()(const Running& running) const {
    out.instant("started_at", running.started_at).instant("lease_until", running.lease_until);
    if (running.cancel_requested) out.flag("cancel_requested", true);
  }
  void operator()(const InDoubt& doubt) const { out.instant("since", doubt.since); }
  void operator()(const Completed& completed) const {
    out.instant("settled_at", completed.at);
    if (run.head->guarded() && run.head->guard == Guard::once && run.head->window != kForever)
      out.instant("expires_at", completed.at + run.head->window);
  }
  void operator()(const Failed& failed) const { write_failure(out, failed.at, failed.code, failed.effect); }
  void operator()(const Cancelled& cancelled) const {
    write_failure(out, cancelled.at, cancelled.code, cancelled.effect);
  }
};

// The error of a command has its output behind the first line: too much for each item of a list.
std::string_view shorten(std::string_view message) {
  constexpr std::size_t kListedMax = 2048;
  return message.size() > kListedMax ? message.substr(0, message.find('\n')) : message;
}

void write_error(ObjectOut& out, const Run& run, Payloads payloads) {
  if (run.as<Completed>() || (run.last_error.empty() && run.last_error_code.empty())) return;
  ObjectOut error(out.member("error"));
  error.text("message", payloads == Payloads::none ? shorten(run.last_error) : run.last_error);
  if (!run.last_error_code.empty()) error.text("code", run.last_error_code);
  error.end();
}

}  // namespace

void append_run(std::string& text, const Run& run, Payloads payloads, std::string_view progress) {
  const RunHead& head = *run.head;
  ObjectOut out(text);
  out.id("id", head.id).word("tenant", head.tenant).text("function", head.function);
  if (!head.key.empty()) out.text("key", head.key);
  out.word("guard", to_string(head.guard)).word("status", to_string(run.status()));
  out.word("origin", run.origin == Origin::claimed ? "claimed" : "enqueued");
  out.number("generation", run.generation).number("attempt", run.attempt).number("attempts_max", run.attempts_max);
  out.number("fence", static_cast<std::int64_t>(run.fence));
  if (head.priority != 0) out.number("priority", head.priority);
  out.instant("created_at", head.created_at);
  std::visit(WriteState{out, run}, run.state);
  if (head.window == kForever)
    out.word("window_ms", kForeverWord);
  else
    out.number("window_ms", head.window.count());
  out.number("lease_ms", head.lease.count());
  out.word("on_doubt", to_string(head.on_doubt)).id("effect_key", run.effect_key);
  if (!head.caller.empty()) out.text("caller", head.caller);
  write_error(out, run, payloads);
  if (!progress.empty()) out.raw("progress", progress);
  if (payloads == Payloads::all) out.payload("input", head.input);
  const auto* completed = run.as<Completed>();
  if (completed && payloads != Payloads::none) out.payload("result", completed->result);
  out.end();
}

std::string to_json(const Run& run, Payloads payloads, std::string_view progress) {
  std::string out;
  out.reserve(1024);
  append_run(out, run, payloads, progress);
  return out;
}

void append_suppressed(std::string& text, const Duplicates& suppressed) {
  ObjectOut out(text);
  out.raw("counts", "[");
  for (const DuplicateCount& count : suppressed.counts) {
    if (&count != suppressed.counts.data()) text.push_back(',');
    ObjectOut item(text);
    item.text("reason", count.reason).number("count", static_cast<std::int64_t>(count.count));
    item.instant("first", count.first).instant("last", count.last).end();
  }
  text.push_back(']');
  out.raw("latest", "[");
  for (const DuplicateCaller& caller : suppressed.latest) {
    if (&caller != suppressed.latest.data()) text.push_back(',');
    ObjectOut item(text);
    item.instant("at", caller.at).text("reason", caller.reason).text("caller", caller.caller).end();
  }
  text.push_back(']');
  out.end();
}

namespace {

void append_steps(std::string& text, const std::vector<MemberStep>& steps) {
  text.push_back('[');
  for (const MemberStep& step : steps) {
    if (&step != steps.data()) text.push_back(',');
    ObjectOut item(text);
    item.word("step", to_string(step.kind)).text("by", step.by).instant("at", step.at);
    if (!step.note.empty()) item.text("note", step.note);
    item.end();
  }
  text.push_back(']');
}

}  // namespace

void append_dead_letter(std::string& text, const DeadLetter& entry, const MembersPage* page) {
  ObjectOut out(text);
  out.id("id", entry.id).word("tenant", entry.tenant).text("function", entry.function).text("code", entry.code);
  out.text("reason", page == nullptr ? shorten(entry.reason) : entry.reason).id("latest_run", entry.latest_run);
  out.number("count", static_cast<std::int64_t>(entry.count));
  out.instant("opened_at", entry.opened_at).instant("updated_at", entry.updated_at);
  if (entry.acknowledged_at)
    out.instant("acknowledged_at", *entry.acknowledged_at).text("acknowledged_by", entry.acknowledged_by);
  if (page != nullptr) {
    out.raw("members", "[");
    for (const DeadLetterMember& member : page->members) {
      if (&member != page->members.data()) text.push_back(',');
      ObjectOut item(text);
      item.id("run", member.run).number("generation", member.generation);
      if (!member.key.empty()) item.text("key", member.key);
      item.text("code", member.code).text("reason", shorten(member.reason)).number("attempts", member.attempts);
      item.word("effect", to_string(member.effect)).instant("at", member.at);
      if (!member.steps.empty()) append_steps(item.member("steps"), member.steps);
      item.end();
    }
    text.push_back(']');
    if (!page->next.empty()) out.text("next", page->next);
  }
  out.end();
}

void append_token(std::string& text, const TokenRecord& token, std::string_view whole_token) {
  ObjectOut out(text);
  out.word("id", token.id);
  if (!whole_token.empty()) out.word("token", whole_token);
  out.text("name", token.name).word("role", to_string(token.role)).raw("tenants", "[");
  for (const std::string& tenant : token.tenants) {
    if (&tenant != token.tenants.data()) text.push_back(',');
    text.append("\"").append(tenant).append("\"");
  }
  text.push_back(']');
  out.instant("created_at", token.created_at);
  if (token.expires_at) out.instant("expires_at", *token.expires_at);
  if (token.revoked_at) out.instant("revoked_at", *token.revoked_at);
  out.end();
}

}  // namespace latchkey::wire
