#include "config/checklist.hpp"

#include <fmt/format.h>

namespace latchkey::config {
namespace {

ChecklistItem make_key_item(const FunctionDefinition& function) {
  if (!function.key.empty()) return {"key", true, "key template " + function.key};
  return {"key", false, "no key template: a job that names no key runs each time it is enqueued"};
}

ChecklistItem make_guard_item(const FunctionDefinition& function) {
  switch (function.guard_or_default(!function.key.empty())) {
    case Guard::once:
      return {"guard", true, "guard once: a success is replayed for " + format_duration(function.window_or_default())};
    case Guard::while_running:
      return {"guard", true, "guard while-running: one open run per key"};
    case Guard::none:
      break;
  }
  return {"guard", false, "no guard: add a `key`, or let callers name one with `guard: once`"};
}

ChecklistItem make_retry_item(const FunctionDefinition& function) {
  const RetryPolicy& retry = function.retry_or_default();
  if (retry.retries == 0) return {"retry", false, "no retries: a failed attempt is final"};
  return {
      "retry", true,
      fmt::format("{} retries{}", retry.retries, function.retry ? "" : " (the default; state it to make it clear)")};
}

ChecklistItem make_output_item(const FunctionDefinition& function) {
  if (!function.unique_output.empty()) return {"output", true, "unique output " + function.unique_output};
  if (function.effect == EffectKind::keyed)
    return {"output", true, "effect keyed: the handler deduplicates by its key"};
  if (function.effect_or_default() == EffectKind::keyed)
    return {"output", false,
            "effect is keyed by default: say `effect: keyed` if the handler deduplicates by Idempotency-Key"};
  return {"output", false, "no unique output: declare `output: {unique: INDEX}`, or `effect: keyed`"};
}

}  // namespace

Checklist make_checklist(const FunctionDefinition& function) {
  Checklist list;
  list.items = {make_key_item(function),
                make_guard_item(function),
                make_retry_item(function),
                {"dead_letter", true, "failures for good become dead letters"},
                make_output_item(function)};
  if (!function.unique_output.empty()) {
    list.idempotent = "yes";
    list.reason = "its output has the unique index " + function.unique_output;
  } else if (function.effect == EffectKind::keyed) {
    list.idempotent = "yes";
    list.reason = "its handler deduplicates by the Idempotency-Key header";
  } else if (function.effect == EffectKind::plain) {
    list.idempotent = "no";
    list.reason = "its effect is plain: after a crash between effect and settle it may happen twice";
  } else {
    list.idempotent = "unknown";
    list.reason = "its definition names no `effect` and no `output`";
  }
  return list;
}

}  // namespace latchkey::config
