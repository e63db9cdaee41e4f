// Retry policies as config members, and the policies that have a name.
#include "config/retry_settings.hpp"

#include <algorithm>
#include <array>

#include "config/values.hpp"
#include "model/limits.hpp"

namespace latchkey::config {
namespace {

using namespace std::chrono_literals;

constexpr std::array<std::string_view, 6> kJitters{"none", "full", "equal", "additive", "decorrelated", "percent"};

}  // namespace

std::optional<RetryPolicy> find_retry_kind(std::string_view name) {
  if (name == "api") return RetryPolicy{.retries = 3, .first = 1s, .factor = 2, .ceiling = 30s, .total = 10s};
  if (name == "background") return RetryPolicy{.retries = 5, .first = 1s, .factor = 5, .ceiling = 2min, .total = 5min};
  if (name == "webhook") {
    RetryPolicy policy{.retries = 9, .total = std::chrono::hours{24}};
    // The offsets 5 s, 30 s, 2 min, 10 min, 30 min, 1 h, 6 h, 12 h and 24 h after the first attempt, as delays.
    policy.schedule = {5s, 25s, 90s, 8min, 20min, 30min, 5h, 6h, 12h};
    return policy;
  }
  if (name == "scheduled") return RetryPolicy{.retries = 3, .first = 1min, .factor = 5, .ceiling = 30min, .total = 1h};
  return std::nullopt;
}

void describe(Members& members, RetryPolicy& retry) {
  members.value(number("retries", retry.retries, {0, kRetriesMax}, "Attempts after the first one."));
  members.value(duration("first", retry.first, {0ms, 24h}, "The first delay."));
  members.value(number("factor", retry.factor, {0, kFactorMax}, "Each delay is the one before times this."));
  members.value(duration("ceiling", retry.ceiling, {0ms, kWindowMax}, "No delay is longer."));
  Value total = duration("total", retry.total, {0ms, kWindowMax}, "No retry starts later after the first attempt.");
  total.is_set = [&retry] { return retry.total != Duration::max(); };
  members.value(total);
  members.value(choice_of(
      "jitter", kJitters, "How delays are spread.",
      [&retry]() -> std::optional<std::size_t> {
        if (retry.jitter == Jitter::none) return std::nullopt;
        return static_cast<std::size_t>(retry.jitter);
      },
      [&retry](std::size_t value) { retry.jitter = static_cast<Jitter>(value); }));
  Value percent = number("jitter_percent", retry.jitter_percent, {0, 100}, "The share of the jitter `percent`.");
  percent.is_set = [&retry] { return retry.jitter == Jitter::percent; };
  members.value(percent);
  members.value({.info = {"schedule", "Every delay, instead of first, factor and ceiling."},
                 .schema = R"({"type":"array","items":{"type":"string"},"minItems":1,"maxItems":64})",
                 .read = [&retry](const Node& node) -> std::optional<std::string> {
                   if (!node.is_sequence() || node.items.empty() || node.items.size() > kScheduleMax)
                     return "must be a list of 1 to 64 durations";
                   std::vector<Duration> schedule;
                   for (const Node& item : node.items) {
                     const auto span = parse_duration(item.text);
                     if (!span) return "must be a list of durations such as 30s";
                     schedule.push_back(*span);
                   }
                   retry.schedule = std::move(schedule);
                   return std::nullopt;
                 },
                 .is_set = [&retry] { return !retry.schedule.empty(); },
                 .write =
                     [&retry](std::string& json) {
                       json += '[';
                       for (const Duration& span : retry.schedule) {
                         if (&span != &retry.schedule.front()) json += ',';
                         json += '"' + format_duration(span) + '"';
                       }
                       json += ']';
                     }});
}

Object retry_member(std::optional<RetryPolicy>& retry) {
  return {.info = {"retry", "When a failed attempt is tried again: a policy, or api, background, webhook, scheduled."},
          .describe = [&retry](Members& members) { describe(members, *retry); },
          .begin = [&retry] { retry = RetryPolicy{}; },
          .is_set = [&retry] { return retry.has_value(); },
          .read_text = [&retry](const std::string& kind) -> std::optional<std::string> {
            retry = find_retry_kind(kind);
            if (!retry) return "must be a mapping, or api, background, webhook or scheduled";
            return std::nullopt;
          },
          .text_schema = R"({"enum":["api","background","webhook","scheduled"]})"};
}

}  // namespace latchkey::config
