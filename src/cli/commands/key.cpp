#include <CLI/CLI.hpp>
#include <istream>
#include <iterator>
#include <memory>
#include <optional>
#include <ostream>

#include "base/hex.hpp"
#include "cli/commands/commands.hpp"
#include "keying/cache_key.hpp"
#include "keying/canonical_json.hpp"
#include "keying/entity_hash.hpp"
#include "keying/lock_key.hpp"

namespace latchkey {
namespace {

// `latchkey key` computes keys as the server does, from flags or from JSON on stdin. It needs no store. Each subcommand
// prints one line. An error prints nothing on stdout and exits 2 for wrong flags, 65 for malformed JSON.

struct LockOptions {
  std::string function;
  std::string tenant;
  std::string grain = "day";
  std::string at;
  std::string time_zone = "UTC";
  std::optional<std::string> entities;
  std::optional<std::string> input;
  std::optional<std::string> pattern;
};

struct CacheOptions {
  std::string job;
  std::string process;
};

void report(const CliContext& context, const Result<std::string>& line) {
  if (!line) return context.report(line.error(), line.error().code == Code::INVALID_JSON ? EXIT_BAD_DATA : EXIT_USAGE);
  context.out << *line << '\n' << std::flush;
  context.set_exit(0);
}

std::string read_all(std::istream& in) { return {std::istreambuf_iterator<char>(in), {}}; }

Result<std::string> run_lock(const LockOptions& options, Clock& clock) {
  const auto grain = parse_grain(options.grain);
  if (!grain) return std::unexpected(grain.error());
  const Result<Instant> at = options.at.empty() ? clock.now() : parse_rfc3339(options.at);
  if (!at) return std::unexpected(at.error());
  const LockKeyRequest request{.function = options.function,
                               .tenant = options.tenant,
                               .grain = *grain,
                               .at = *at,
                               .time_zone = options.time_zone,
                               .entities = options.entities,
                               .input = options.input};
  if (!options.pattern) return compute_lock_key(request);
  const auto pattern = LockKeyTemplate::parse(*options.pattern);
  if (!pattern) return std::unexpected(pattern.error());
  return pattern->render(request);
}

void add_lock(CLI::App& key, const CliContext& context) {
  auto options = std::make_shared<LockOptions>();
  CLI::App* const lock = key.add_subcommand("lock", "The lock key of a function's run");
  lock->add_option("--function", options->function, "Function name")->required();
  lock->add_option("--tenant", options->tenant, "Tenant")->required();
  lock->add_option("--grain", options->grain, "1min, 5min, 10min, 15min, 30min, hour, day, week or month")
      ->capture_default_str();
  lock->add_option("--at", options->at, "RFC 3339 time (default: now)");
  lock->add_option("--time-zone", options->time_zone, "Zone of the local date for day, week and month")
      ->capture_default_str();
  lock->add_option("--entity", options->entities, "JSON object; its hash is the last part of the key");
  lock->add_option("--input", options->input, "JSON for {input./…} of the template");
  lock->add_option("--template", options->pattern,
                   "Form of the key: {function} {tenant} {day} {entity} {input./json/pointer} …");
  lock->footer(R"(Examples:
  latchkey key lock --function detect-alerts --tenant acme --grain day --at 2026-02-06T10:00:00Z
    detect-alerts:acme:2026-02-06
  latchkey key lock --function score --tenant acme --grain hour --entity '{"rule_id":"r123"}'
  latchkey key lock --function gen-decision --tenant acme --input '{"alertId":"a-7"}' \
    --template '{function}:{tenant}:{input./alertId}:{day}' --time-zone Europe/Oslo)");
  lock->callback([options, &context] { report(context, run_lock(*options, context.clock)); });
}

void add_cache(CLI::App& key, const CliContext& context) {
  auto options = std::make_shared<CacheOptions>();
  CLI::App* const cache = key.add_subcommand("cache", "The key of a cached result; inputs as JSON on stdin");
  cache->add_option("--job", options->job, "Job id (default: none; all jobs share the result)");
  cache->add_option("--process", options->process, "Process id")->required();
  cache->footer("Example:\n  echo '{\"layer\":\"roads\"}' | latchkey key cache --job job-1 --process buffer");
  cache->callback([options, &context] {
    report(context, compute_cache_key(options->job, read_all(context.in), options->process));
  });
}

// A command that computes its line from the JSON on stdin and has no flags.
void add_filter(CLI::App& key, const CliContext& context, const std::string& name, const std::string& description,
                Result<std::string> (*compute)(std::string_view)) {
  CLI::App* const filter = key.add_subcommand(name, description + "; JSON on stdin");
  filter->footer("Example:\n  echo '{\"b\":2,\"a\":1.50}' | latchkey key " + name);
  filter->callback([compute, &context] { report(context, compute(read_all(context.in))); });
}

Result<std::string> format_fingerprint(std::string_view text) {
  const auto fingerprint = compute_fingerprint(text);
  if (!fingerprint) return std::unexpected(fingerprint.error());
  return to_hex(*fingerprint);
}

}  // namespace

void add_key_command(CLI::App& app, const CliContext& context) {
  CLI::App* const key = app.add_subcommand("key", "Compute a key as the server does");
  key->require_subcommand(1);
  key->footer(R"(Examples:
  latchkey key lock --function detect-alerts --tenant acme --grain day --at 2026-02-06T10:00:00Z
  echo '{"rule_id":"r123","sku":"SKU001"}' | latchkey key entity
  echo '{"b":2,"a":1.50}' | latchkey key canonical
    {"a":1.5,"b":2})");
  add_lock(*key, context);
  add_filter(*key, context, "entity", "The entity hash of a JSON object", compute_entity_hash);
  add_filter(*key, context, "canonical", "Canonical JSON (RFC 8785)", canonical_json);
  add_filter(*key, context, "fingerprint", "SHA-256 of the canonical JSON", format_fingerprint);
  add_cache(*key, context);
}

}  // namespace latchkey
