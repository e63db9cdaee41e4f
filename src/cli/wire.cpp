#include "cli/wire.hpp"

#include <fmt/format.h>

#include "http/problem.hpp"

namespace latchkey::wire {
namespace {

// Writes an object member by member; members without a value are left out.
class Writer {
 public:
  Writer& raw(std::string_view name, std::string_view json) {
    out_ += out_.size() > 1 ? "," : "";
    out_ += quote(name) + ":";
    out_ += json;
    return *this;
  }
  Writer& text(std::string_view name, std::string_view value) { return raw(name, quote(value)); }
  Writer& text_if(std::string_view name, std::string_view value) { return value.empty() ? *this : text(name, value); }
  Writer& number(std::string_view name, std::int64_t value) { return raw(name, std::to_string(value)); }
  Writer& time(std::string_view name, std::optional<Instant> at) {
    return at ? text(name, format_rfc3339(*at)) : *this;
  }
  std::string end() { return std::move(out_) + "}"; }

 private:
  std::string out_ = "{";
};

State read_state(Json object, Status status) {
  const Instant settled_at = instant(object, "settled_at").value_or(Instant{});
  const Effect effect = text(object, "effect") == "unknown" ? Effect::unknown : Effect::none;
  switch (status) {
    case Status::queued:
      return Queued{instant(object, "due_at").value_or(Instant{}), QueuedBy::enqueue};
    case Status::running: {
      bool cancel = false;
      if (object["cancel_requested"].get(cancel) != simdjson::SUCCESS) cancel = false;
      return Running{.started_at = instant(object, "started_at").value_or(Instant{}),
                     .lease_until = instant(object, "lease_until").value_or(Instant{}),
                     .cancel_requested = cancel};
    }
    case Status::in_doubt:
      return InDoubt{instant(object, "since").value_or(Instant{})};
    case Status::completed: {
      const auto result = member(object, "result");
      return Completed{settled_at, result ? simdjson::minify(*result) : std::string()};
    }
    case Status::failed:
      return Failed{settled_at, text(object, "code"), effect};
    case Status::cancelled:
      return Cancelled{settled_at, text(object, "code"), effect};
  }
  return Queued{};
}

// Bytes that are JSON as they are, others as a string.
std::string as_json(const Bytes& bytes) { return is_json(bytes) ? bytes : quote(bytes); }

void write_state(Writer& out, const Run& run, Detail detail) {
  if (const auto* queued = run.as<Queued>()) out.time("due_at", queued->due_at);
  if (const auto* running = run.as<Running>()) {
    out.time("started_at", running->started_at).time("lease_until", running->lease_until);
    if (running->cancel_requested) out.raw("cancel_requested", "true");
  }
  if (run.is_settled()) out.time("settled_at", run.settled_at());
  if (const auto* done = run.as<Completed>()) {
    if (run.head->guard == Guard::once) out.time("expires_at", done->at + run.head->window);
    if (detail == Detail::whole && !done->result.empty()) out.raw("result", as_json(done->result));
  }
  const auto* failed = run.as<Failed>();
  const auto* cancelled = run.as<Cancelled>();
  if (failed) out.text_if("code", failed->code).text("effect", to_string(failed->effect));
  if (cancelled) out.text_if("code", cancelled->code).text("effect", to_string(cancelled->effect));
}

std::string write_error(const Run& run) {
  return Writer().text("message", run.last_error).text_if("code", run.last_error_code).end();
}

}  // namespace

std::string quote(std::string_view text) { return http::to_json_string(text); }

bool is_json(std::string_view text) {
  simdjson::dom::parser parser;
  return parser.parse(simdjson::padded_string(text)).error() == simdjson::SUCCESS;
}

std::optional<Json> member(Json object, std::string_view name) {
  Json found;
  if (object[name].get(found) != simdjson::SUCCESS || found.is_null()) return std::nullopt;
  return found;
}

std::string text(Json object, std::string_view name) {
  std::string_view value;
  return object[name].get(value) == simdjson::SUCCESS ? std::string(value) : std::string();
}

std::optional<Instant> instant(Json object, std::string_view name) {
  const auto at = parse_rfc3339(text(object, name));
  return at ? std::optional(*at) : std::nullopt;
}

std::uint64_t number(Json object, std::string_view name) {
  std::uint64_t value = 0;
  return object[name].get(value) == simdjson::SUCCESS ? value : 0;
}

Result<Run> read_run(Json object) {
  const auto id = parse_uuid(text(object, "id"));
  const auto status = parse_status(text(object, "status"));
  if (!id || !status) return fail(Code::REPLY_LOST, "the server's answer has no run in it");
  auto head = std::make_shared<RunHead>();
  head->id = *id;
  head->tenant = text(object, "tenant");
  head->function = text(object, "function");
  head->key = text(object, "key");
  head->guard = parse_guard(text(object, "guard")).value_or(Guard::none);
  head->on_doubt = text(object, "on_doubt") == "hold" ? OnDoubt::hold : OnDoubt::rerun;
  head->window = Duration{number(object, "window_ms")};
  head->lease = Duration{number(object, "lease_ms")};
  head->created_at = instant(object, "created_at").value_or(Instant{});
  head->caller = text(object, "caller");
  if (const auto input = member(object, "input")) head->input = simdjson::minify(*input);
  Run run;
  run.head = std::move(head);
  run.origin = text(object, "origin") == "enqueued" ? Origin::enqueued : Origin::claimed;
  run.generation = static_cast<std::uint32_t>(number(object, "generation"));
  run.attempt = static_cast<std::uint32_t>(number(object, "attempt"));
  run.attempts_max = static_cast<std::uint32_t>(number(object, "attempts_max"));
  run.fence = Fence{number(object, "fence")};
  if (const auto error = member(object, "error")) {
    run.last_error = text(*error, "message");
    run.last_error_code = text(*error, "code");
  }
  run.effect_key = parse_uuid(text(object, "effect_key")).value_or(*id);
  run.state = read_state(object, *status);
  return run;
}

Result<DeadLetter> read_dead_letter(Json object) {
  const auto id = parse_uuid(text(object, "id"));
  if (!id) return fail(Code::REPLY_LOST, "the server's answer has no dead letter in it");
  return DeadLetter{.id = *id,
                    .tenant = text(object, "tenant"),
                    .function = text(object, "function"),
                    .code = text(object, "code"),
                    .reason = text(object, "reason"),
                    .latest_run = parse_uuid(text(object, "latest_run")).value_or(Uuid{}),
                    .count = number(object, "count"),
                    .opened_at = instant(object, "opened_at").value_or(Instant{}),
                    .updated_at = instant(object, "updated_at").value_or(Instant{}),
                    .acknowledged_at = instant(object, "acknowledged_at"),
                    .acknowledged_by = text(object, "acknowledged_by")};
}

DeadLetterMember read_member(Json object) {
  std::vector<MemberStep> steps;
  simdjson::dom::array items;
  if (object["steps"].get(items) == simdjson::SUCCESS) {
    for (const Json item : items) {
      const std::string kind = text(item, "step");
      for (const StepKind each : {StepKind::retried, StepKind::completed, StepKind::failed})
        if (kind == to_string(each))
          steps.push_back({each, text(item, "by"), instant(item, "at").value_or(Instant{}), text(item, "note")});
    }
  }
  return {.run = parse_uuid(text(object, "run")).value_or(Uuid{}),
          .generation = static_cast<std::uint32_t>(number(object, "generation")),
          .key = text(object, "key"),
          .code = text(object, "code"),
          .reason = text(object, "reason"),
          .attempts = static_cast<std::uint32_t>(number(object, "attempts")),
          .effect = text(object, "effect") == "unknown" ? Effect::unknown : Effect::none,
          .at = instant(object, "at").value_or(Instant{}),
          .steps = std::move(steps)};
}

std::string write_run(const Run& run, Detail detail) {
  const RunHead& head = *run.head;
  Writer out;
  out.text("id", to_string(head.id)).text("tenant", head.tenant).text("function", head.function);
  out.text_if("key", head.key).text("guard", to_string(head.guard)).text("status", to_string(run.status()));
  out.text("origin", run.origin == Origin::enqueued ? "enqueued" : "claimed");
  out.number("generation", run.generation).number("attempt", run.attempt).number("attempts_max", run.attempts_max);
  out.number("fence", static_cast<std::int64_t>(run.fence)).time("created_at", head.created_at);
  write_state(out, run, detail);
  out.number("window_ms", head.window.count()).number("lease_ms", head.lease.count());
  out.text("on_doubt", to_string(head.on_doubt)).text("effect_key", to_string(run.effect_key));
  out.text_if("caller", head.caller);
  if (!run.last_error.empty()) out.raw("error", write_error(run));
  if (detail == Detail::whole && !head.input.empty()) out.raw("input", as_json(head.input));
  return out.end();
}

std::string write_dead_letter(const DeadLetter& entry) {
  return Writer()
      .text("id", to_string(entry.id))
      .text("tenant", entry.tenant)
      .text("function", entry.function)
      .text("code", entry.code)
      .text("reason", entry.reason)
      .text("latest_run", to_string(entry.latest_run))
      .number("count", static_cast<std::int64_t>(entry.count))
      .time("opened_at", entry.opened_at)
      .time("updated_at", entry.updated_at)
      .time("acknowledged_at", entry.acknowledged_at)
      .text_if("acknowledged_by", entry.acknowledged_by)
      .end();
}

std::string write_member(const DeadLetterMember& member) {
  std::vector<std::string> steps;
  for (const MemberStep& step : member.steps) {
    Writer out;
    out.text("step", to_string(step.kind)).text("by", step.by).time("at", step.at).text_if("note", step.note);
    steps.push_back(out.end());
  }
  return Writer()
      .text("run", to_string(member.run))
      .number("generation", member.generation)
      .text_if("key", member.key)
      .text("code", member.code)
      .text("reason", member.reason)
      .number("attempts", member.attempts)
      .text("effect", to_string(member.effect))
      .time("at", member.at)
      .raw("steps", fmt::format("[{}]", fmt::join(steps, ",")))
      .end();
}

std::string write_page(const std::vector<std::string>& items, const std::string& next) {
  return fmt::format(R"({{"items":[{}],"next":{}}})", fmt::join(items, ","), next.empty() ? "null" : quote(next));
}

}  // namespace latchkey::wire
