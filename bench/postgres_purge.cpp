// The cost of purging jobs, relative to executing them.
#include <fmt/format.h>

#include <future>

#include "bench.hpp"
#include "postgres_load.hpp"

namespace latchkey::bench {
namespace {

using namespace std::chrono_literals;

// Purges in slices, as the engine does, and returns the number of purged runs.
std::uint64_t purge_all(Store& store) {
  std::uint64_t gone = 0;
  for (bool more = true; more;) {
    std::promise<Swept> reply;
    store.purge({}, 500, [&](Result<Swept> swept) {
      require(swept.has_value(), "a purge failed");
      reply.set_value(*swept);
    });
    const Swept swept = reply.get_future().get();
    gone += swept.changed;
    more = swept.more;
  }
  return gone;
}

}  // namespace

void run_purge(const std::string& url, int rounds) {
  constexpr std::uint64_t kJobs = 50'000;
  ManualClock clock(SystemClock().now());
  Bench bench(url, &clock);
  std::uint64_t key = 0;
  std::string each;
  std::vector<double> shares;
  for (int round = 0; round < rounds; ++round)
    for (const bool keyed : {false, true}) {
      const double rate = Jobs(bench.store(), kJobs, keyed, key).run();
      if (keyed) key += kJobs;
      clock.advance(24h * 40);
      const auto start = Stopwatch::now();
      require(purge_all(bench.store()) == kJobs, "not all of it was purged");
      const double purged = static_cast<double>(kJobs) / seconds_since(start);
      shares.push_back(rate / purged);
      each += fmt::format("{}{{\"keyed\": {}, \"jobs_s\": {:.0f}, \"purged_s\": {:.0f}}}", each.empty() ? "" : ", ",
                          keyed, rate, purged);
    }
  fmt::print("{{\"purge_over_work\": {:.3f}, \"rounds\": [{}]}}\n", percentile(shares, 0.5), each);
}

}  // namespace latchkey::bench
