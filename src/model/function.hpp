// FunctionDefinition: what the registry stores about a function. Members that a definition does not name are empty
// here; the *_or_default() functions give the value that then holds. A value; it performs nothing.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/run.hpp"

namespace latchkey {

enum class EffectKind : std::uint8_t { transactional, keyed, plain };
// The reaction to an attempt whose effect may have happened. A function has one more than a run: under `probe` the run
// is held, and a server asks the probe.
enum class DoubtPolicy : std::uint8_t { rerun, hold, probe };

// Texts may have placeholders (config/placeholder.hpp); a server substitutes them when it calls the function.
struct ProbeTarget {
  std::string http;                  // empty: a command
  std::vector<std::string> command;  // empty: a URL
  bool operator==(const ProbeTarget&) const = default;
};

struct ConcurrencyLimit {
  std::optional<std::uint32_t> total, per_tenant;
  bool operator==(const ConcurrencyLimit&) const = default;
};

// At most `count` starts in each window of `per`, aligned to the epoch.
struct RateLimit {
  std::uint32_t count = 0;
  Duration per{};
  bool operator==(const RateLimit&) const = default;
};

// A run that is enqueued when a run of this function completes. The input is JSON; its strings may have {result./…}.
struct FollowUpRule {
  std::string function;
  std::string input;
  bool operator==(const FollowUpRule&) const = default;
};

struct FunctionDefinition {
  std::string name;
  std::string description;

  // Exactly one of the three.
  std::string http;
  std::vector<std::string> command;
  bool pull = false;

  std::map<std::string, std::string> headers;  // of http
  std::uint32_t redirects = 0;                 // of http: how many 307 and 308 are followed
  std::string secret;                          // of http: signs calls
  std::optional<Duration> timeout;
  std::optional<Duration> lease;
  std::optional<Duration> window;
  std::optional<Guard> guard;
  std::string key;  // a template; empty: the caller names the key
  std::string time_zone;
  std::string busy_code;
  std::optional<EffectKind> effect;
  std::optional<DoubtPolicy> on_doubt;
  std::optional<ProbeTarget> probe;
  std::optional<RetryPolicy> retry;
  std::optional<std::int32_t> priority;
  std::optional<ConcurrencyLimit> concurrency;
  std::optional<RateLimit> rate;
  std::vector<FollowUpRule> then;
  std::string unique_output;  // the unique index that makes the function's output idempotent

  bool operator==(const FunctionDefinition&) const = default;

  bool is_http() const { return !http.empty(); }
  bool is_command() const { return !command.empty(); }
  Duration timeout_or_default() const { return timeout.value_or(std::chrono::seconds{60}); }
  Duration lease_or_default() const { return lease.value_or(kDefaultLease); }
  Duration window_or_default() const { return window.value_or(kDefaultWindow); }
  EffectKind effect_or_default() const { return effect.value_or(is_command() ? EffectKind::plain : EffectKind::keyed); }
  DoubtPolicy on_doubt_or_default() const {
    return on_doubt.value_or(effect_or_default() == EffectKind::plain ? DoubtPolicy::hold : DoubtPolicy::rerun);
  }
  const RetryPolicy& retry_or_default() const { return retry ? *retry : kDefaultRetries; }
  // The guard of a run with this key; without a key there is nothing to guard.
  Guard guard_or_default(bool has_key) const { return guard.value_or(has_key ? Guard::once : Guard::none); }
};

}  // namespace latchkey
