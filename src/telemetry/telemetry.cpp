#include "telemetry/telemetry.hpp"

#include <prometheus/text_serializer.h>

#include <algorithm>
#include <sstream>

namespace latchkey {
namespace {

auto& counters(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
}
auto& gauges(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(registry);
}

}  // namespace

Telemetry::Telemetry()
    : stale_settles_(counters(registry_, "latchkey_stale_settles_total", "Settles refused with LEASE_LOST").Add({})),
      heartbeats_(counters(registry_, "latchkey_heartbeats_total", "Leases extended").Add({})),
      store_errors_(counters(registry_, "latchkey_store_errors_total", "Requests that the store failed").Add({})),
      replays_from_memory_(
          gauges(registry_, "latchkey_replays_from_memory", "Replays answered from memory since the start").Add({})),
      waiting_(gauges(registry_, "latchkey_waiting_requests", "Requests that wait for a run to settle").Add({})),
      oldest_doubt_(
          gauges(registry_, "latchkey_oldest_doubt_seconds", "Age of the oldest doubt; 0 when no run is in doubt")
              .Add({})),
      unacknowledged_dead_letters_(
          gauges(registry_, "latchkey_unacknowledged_dead_letters", "Dead letters that are not acknowledged").Add({})) {
  auto& open_runs = gauges(registry_, "latchkey_open_runs", "Runs that are not settled, by state");
  const char* states[] = {"queued", "running", "in_doubt"};
  for (std::size_t i = 0; i < open_runs_.size(); ++i) open_runs_[i] = &open_runs.Add({{"state", states[i]}});
  auto& claims = counters(registry_, "latchkey_claims_total", "Claims by answer");
  // In the order of ClaimReply.
  const char* answers[] = {"won", "already_running", "not_due", "outcome_unknown", "replayed", "key_reused"};
  for (std::size_t i = 0; i < claims_.size(); ++i) claims_[i] = &claims.Add({{"answer", answers[i]}});
  queued_claims_ = &claims.Add({{"answer", "already_queued"}});
  refused_claims_ = &claims.Add({{"answer", "move_refused"}});
  auto& settles = counters(registry_, "latchkey_settles_total", "Accepted settles by kind");
  const char* kinds[] = {"complete", "fail", "release", "snooze"};  // in the order of Ending
  for (std::size_t i = 0; i < settles_.size(); ++i) settles_[i] = &settles.Add({{"kind", kinds[i]}});
  auto& responses = counters(registry_, "latchkey_http_responses_total", "HTTP responses by class of status");
  const char* classes[] = {"other", "1xx", "2xx", "3xx", "4xx", "5xx"};
  for (std::size_t i = 0; i < responses_.size(); ++i) responses_[i] = &responses.Add({{"class", classes[i]}});
}

void Telemetry::count(const ClaimReply& reply) {
  const auto* busy = std::get_if<Busy>(&reply);
  if (busy && busy->code == Code::ALREADY_QUEUED) return queued_claims_->Increment();
  if (busy && busy->code != Code::ALREADY_RUNNING) return refused_claims_->Increment();
  claims_[reply.index()]->Increment();
}

void Telemetry::count_settled(std::size_t kind) { settles_.at(kind)->Increment(); }

void Telemetry::count_refused_settle(Code code) {
  if (code == Code::LEASE_LOST) stale_settles_.Increment();
}

void Telemetry::count_response(int status) {
  const auto digit = static_cast<std::size_t>(status / 100);
  responses_[digit < responses_.size() ? digit : 0]->Increment();
}

void Telemetry::set_gauges(const StoreStats& stats, Instant now) {
  const std::uint64_t open[] = {stats.queued, stats.running, stats.in_doubt};
  for (std::size_t i = 0; i < open_runs_.size(); ++i) open_runs_[i]->Set(static_cast<double>(open[i]));
  const Duration doubt = stats.doubt_since ? std::max(Duration{0}, now - *stats.doubt_since) : Duration{0};
  oldest_doubt_.Set(static_cast<double>(doubt.count()) / 1000);
  unacknowledged_dead_letters_.Set(static_cast<double>(stats.unacknowledged_dead_letters));
}

std::string Telemetry::expose(const Readings& readings) {
  replays_from_memory_.Set(static_cast<double>(readings.replays_from_memory));
  waiting_.Set(static_cast<double>(readings.waiting));
  if (readings.stats) set_gauges(*readings.stats, readings.now);
  std::ostringstream out;
  prometheus::TextSerializer().Serialize(out, registry_.Collect());
  return std::move(out).str();
}

}  // namespace latchkey
