#include "wire/run_reader.hpp"

#include "base/base64.hpp"
#include "http/problem.hpp"
#include "model/window.hpp"

namespace latchkey::wire {
namespace {

// A payload is sent as JSON, or as base64 when its bytes are not JSON.
Bytes payload(Json object, const std::string& name) {
  if (const auto json = member(object, name)) return simdjson::minify(*json);
  return decode_base64(text(object, name + "_base64")).value_or("");
}

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
      return Completed{settled_at, payload(object, "result")};
    }
    case Status::failed:
      return Failed{settled_at, text(object, "code"), effect};
    case Status::cancelled:
      return Cancelled{settled_at, text(object, "code"), effect};
  }
  return Queued{};
}

}  // namespace

std::string quote(std::string_view text) { return http::to_json_string(text); }

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
  if (!id || !status) return fail(Code::REPLY_LOST, "the server's reply contains no run");
  auto head = std::make_shared<RunHead>();
  head->id = *id;
  head->tenant = text(object, "tenant");
  head->function = text(object, "function");
  head->key = text(object, "key");
  head->guard = parse_guard(text(object, "guard")).value_or(Guard::none);
  head->on_doubt = text(object, "on_doubt") == "hold" ? OnDoubt::hold : OnDoubt::rerun;
  head->window = text(object, "window_ms") == kForeverWord ? kForever : Duration{number(object, "window_ms")};
  head->lease = Duration{number(object, "lease_ms")};
  head->created_at = instant(object, "created_at").value_or(Instant{});
  head->caller = text(object, "caller");
  if (std::int64_t priority = 0; object["priority"].get(priority) == simdjson::SUCCESS)
    head->priority = static_cast<std::int32_t>(priority);
  head->input = payload(object, "input");
  Run run;
  run.head = std::move(head);
  run.origin = text(object, "origin") == "enqueued" ? Origin::enqueued : Origin::claimed;
  run.generation = static_cast<std::uint32_t>(number(object, "generation"));
  run.attempt = static_cast<std::uint32_t>(number(object, "attempt"));
  run.attempts_max = static_cast<std::uint32_t>(number(object, "attempts_max"));
  run.failures = static_cast<std::uint32_t>(number(object, "failures"));
  run.fence = Fence{number(object, "fence")};
  run.waiting_for = static_cast<std::uint32_t>(number(object, "waiting_for"));
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
  if (!id) return fail(Code::REPLY_LOST, "the server's reply contains no dead letter");
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

}  // namespace latchkey::wire
