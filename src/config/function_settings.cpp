#include "config/function_settings.hpp"

#include <fmt/format.h>

#include <array>

#include "config/placeholder.hpp"
#include "config/read_members.hpp"
#include "config/retry_settings.hpp"
#include "config/values.hpp"
#include "config/write_members.hpp"
#include "keying/grain.hpp"
#include "keying/lock_key.hpp"
#include "keying/names.hpp"
#include "model/limits.hpp"

namespace latchkey::config {
namespace {

using namespace std::chrono_literals;
using Wrong = std::optional<std::string>;

constexpr std::array<std::string_view, 3> kGuards{"none", "once", "while-running"};
constexpr std::array<std::string_view, 3> kEffects{"transactional", "keyed", "plain"};
constexpr std::array<std::string_view, 3> kDoubts{"rerun", "hold", "probe"};

void describe_limits(Members& members, FunctionDefinition& function) {
  members.object({.info = {"concurrency", "How many runs may run at once, over all servers."},
                  .describe =
                      [&function](Members& inner) {
                        ConcurrencyLimit& limit = *function.concurrency;
                        inner.value(number("total", limit.total, {1, 1'000'000}, "Over all tenants."));
                        inner.value(number("per_tenant", limit.per_tenant, {1, 1'000'000}, "Of one tenant."));
                      },
                  .begin = [&function] { function.concurrency.emplace(); },
                  .is_set = [&function] { return function.concurrency.has_value(); }});
  members.object({.info = {"rate", "How many runs may start in each window, over all servers."},
                  .describe =
                      [&function](Members& inner) {
                        RateLimit& rate = *function.rate;
                        inner.value(required(number("count", rate.count, {1, 1'000'000}, "Starts per window.")));
                        inner.value(required(duration("per", rate.per, {1s, 24h}, "The window's length.")));
                      },
                  .begin = [&function] { function.rate.emplace(); },
                  .is_set = [&function] { return function.rate.has_value(); }});
}

void describe_probe(Members& members, FunctionDefinition& function) {
  members.object({.info = {"probe", "Asks whether an attempt whose outcome is unknown had its effect."},
                  .describe =
                      [&function](Members& inner) {
                        inner.value(text("http", function.probe->http, "A URL that a GET asks."));
                        inner.value(texts("command", function.probe->command, "A command that prints the answer."));
                      },
                  .begin = [&function] { function.probe.emplace(); },
                  .is_set = [&function] { return function.probe.has_value(); }});
}

void describe_then(Members& members, FunctionDefinition& function) {
  members.collection({.info = {"then", "Runs that are enqueued in the transaction that completes this one."},
                      .most = 100,
                      .add = [&function](const std::string&) -> Describe {
                        function.then.emplace_back();
                        return [&function, at = function.then.size() - 1](Members& inner) {
                          FollowUpRule& rule = function.then[at];
                          inner.value(required(text("function", rule.function, "The function to enqueue.")));
                          inner.value(json("input", rule.input, "Its input; {result./pointer} takes a value over."));
                        };
                      },
                      .each =
                          [&function](const auto& visit) {
                            for (FollowUpRule& rule : function.then)
                              visit("", [&rule](Members& inner) {
                                inner.value(text("function", rule.function, ""));
                                inner.value(json("input", rule.input, ""));
                              });
                          }});
}

Wrong check_target(const FunctionDefinition& function) {
  const int targets = function.is_http() + function.is_command() + function.pull;
  if (targets != 1) return "a function has exactly one of `http`, `command` and `pull: true`";
  if (function.is_http() && !function.http.starts_with("http://") && !function.http.starts_with("https://") &&
      !function.http.starts_with("${"))
    return "`http` must be a URL that begins with http:// or https://";
  if (!function.is_http() && (!function.headers.empty() || function.redirects > 0 || !function.secret.empty()))
    return "`headers`, `redirects` and `secret` go with `http` alone";
  return std::nullopt;
}

Wrong check_key(const FunctionDefinition& function) {
  if (!function.time_zone.empty() && !find_time_zone(function.time_zone))
    return fmt::format("`time_zone`: the system does not know `{}`", function.time_zone);
  if (function.key.empty()) return std::nullopt;
  if (function.guard == Guard::none) return "`key` has no effect with `guard: none`";
  const auto parsed = LockKeyTemplate::parse(function.key);
  return parsed ? std::nullopt : Wrong("`key`: " + parsed.error().detail);
}

Wrong check_doubt(const FunctionDefinition& function) {
  if (function.effect == EffectKind::transactional)
    return "`effect: transactional` is possible only through the library and SQL";
  const bool has_probe = function.probe.has_value();
  if ((function.on_doubt == DoubtPolicy::probe) != has_probe) return "`on_doubt: probe` and `probe` go together";
  if (has_probe && function.probe->http.empty() == function.probe->command.empty())
    return "`probe` has exactly one of `http` and `command`";
  return std::nullopt;
}

Wrong check_placeholders(const FunctionDefinition& function) {
  Wrong wrong;
  for_each_text(function, [&](const std::string& text) {
    if (!wrong) wrong = find_placeholder_fault(text);
  });
  return wrong;
}

}  // namespace

void describe(Members& members, FunctionDefinition& function) {
  members.value(text("description", function.description, "What the function does, for people."));
  members.value(text("http", function.http, "The URL that a server calls with POST."));
  members.value(texts("command", function.command, "A command and its arguments, run without a shell."));
  members.value(flag("pull", function.pull, "Workers take the jobs over HTTP."));
  members.value(text_map("headers", function.headers, "Headers of the call."));
  members.value(number("redirects", function.redirects, {0, 10}, "How many redirects (307, 308) are followed."));
  members.value(text("secret", function.secret, "Signs the call as Standard Webhooks says; a placeholder."));
  members.value(duration("timeout", function.timeout, {100ms, 24h}, "How long one attempt may take (60s)."));
  members.value(duration("lease", function.lease, {kLeaseMin, kLeaseMax}, "The lease of one attempt (60s)."));
  members.value(duration("window", function.window, {1ms, kWindowMax}, "How long a success is replayed (24h)."));
  members.value(choice("guard", function.guard, kGuards, "What the key guards (once, with a key)."));
  members.value(text("key", function.key, "The key's template, such as {function}:{tenant}:{day}."));
  members.value(text("time_zone", function.time_zone, "The zone of {day}, {week} and {month} (UTC)."));
  members.value(text("busy_code", function.busy_code, "The code of a reply while the key's run is open."));
  members.value(choice("effect", function.effect, kEffects, "How the effect is tied to its outcome."));
  members.value(choice("on_doubt", function.on_doubt, kDoubts, "The reaction to an unknown outcome."));
  describe_probe(members, function);
  members.object(retry_member(function.retry));
  members.value(number("priority", function.priority, {-100, 100}, "Higher priorities are taken first (0)."));
  describe_limits(members, function);
  describe_then(members, function);
  members.object({.info = {"output", "What makes the output idempotent."},
                  .describe =
                      [&function](Members& inner) {
                        inner.value(text("unique", function.unique_output, "The unique index of the output's table."));
                      },
                  .begin = [] {},
                  .is_set = [&function] { return !function.unique_output.empty(); }});
  members.rule([&function]() -> Wrong {
    const auto name = check_function(function.name);
    return name ? std::nullopt : Wrong(name.error().detail);
  });
  for (const auto check : {check_target, check_key, check_doubt, check_placeholders})
    members.rule([&function, check] { return check(function); });
}

std::string to_json(const FunctionDefinition& function) {
  FunctionDefinition copy = function;  // a description binds fields that it could change
  return write_members([&copy](Members& members) { describe(members, copy); });
}

Result<FunctionDefinition> read_function(std::string_view name, std::string_view json) {
  std::vector<Fault> faults;
  const Node node = parse_json(json, faults);
  FunctionDefinition function{.name = std::string(name)};
  if (faults.empty() && !node.is_mapping()) faults.push_back({{}, "", "the body must be a JSON object"});
  if (faults.empty()) read_members(node, "", [&function](Members& members) { describe(members, function); }, faults);
  if (!faults.empty()) return std::unexpected(to_error(faults));
  return function;
}

Error to_error(const std::vector<Fault>& faults, std::string_view file) {
  std::string detail;
  for (const Fault& fault : faults) {
    if (!detail.empty()) detail += file.empty() ? "; " : "\n";
    detail += file.empty() ? fault.message : describe(fault, file);
  }
  return {Code::INVALID_ARGUMENT, std::move(detail)};
}

}  // namespace latchkey::config
