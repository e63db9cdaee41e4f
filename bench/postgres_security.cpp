// The cost of row-level security: two stores in one process, one of them with it switched off, do the same work in
// turn, so that the machine's stalls affect both. Each figure is the rate with it over the rate without it.
#include <fmt/format.h>

#include <functional>

#include "bench.hpp"
#include "postgres_load.hpp"

namespace latchkey::bench {
namespace {

struct Side {
  explicit Side(const std::string& where) : url(where), bench(where) { Jobs(bench.store(), 5'000, false).run(); }
  const std::string url;
  Bench bench;
  std::uint64_t key = 0;
};

double rate_of_jobs(Side& side, bool keyed, std::uint64_t count) {
  const double rate = Jobs(side.bench.store(), count, keyed, side.key).run();
  side.key += count;
  return rate;
}

// The ratios of the pairs; the two sides take turns in beginning a pair.
std::string compare(Side& with, Side& without, int pairs, const std::function<double(Side&)>& rate) {
  std::vector<double> ratios;
  for (int i = 0; i < pairs; ++i) {
    double secured = 0, plain = 0;
    if (i % 2 == 0)
      secured = rate(with), plain = rate(without);
    else
      plain = rate(without), secured = rate(with);
    ratios.push_back(secured / plain);
  }
  std::string text;
  for (const double ratio : ratios) text += (text.empty() ? "" : ", ") + fmt::format("{:.3f}", ratio);
  return "[" + text + "]";
}

}  // namespace

void run_security(const std::string& url, int pairs) {
  constexpr std::uint64_t kJobs = 50'000, kHistory = 2'000'000;
  const std::string plain = url + "_plain", name = plain.substr(plain.rfind('/') + 1);
  Psql(url).run("CREATE DATABASE " + name);
  std::string found;
  const auto record = [&](const std::string& row, const std::string& ratios) {
    found += (found.empty() ? "" : ", ") + fmt::format("\"{}\": {}", row, ratios);
    std::fprintf(stderr, "  security: %s %s\n", row.c_str(), ratios.c_str());
  };
  {
    Side with(url), without(plain);
    without.bench.switch_security_off();
    const auto jobs = [&](bool keyed) {
      return compare(with, without, pairs, [&](Side& side) { return rate_of_jobs(side, keyed, kJobs); });
    };
    record("jobs", jobs(false));
    record("keyed", jobs(true));
    // The median of a call's times counts: the slowest hundredth comes from the machine.
    record("guard",
           compare(with, without, pairs, [](Side& side) { return 1 / percentile(time_guards(side.url, 2), 0.5); }));
    record("letters", compare(with, without, pairs,
                              [](Side& side) { return 1 / percentile(time_letters(side.bench, side.url, 200), 0.5); }));
    for (Side* side : {&with, &without}) rate_of_jobs(*side, true, kHistory);
    record("jobs at 2 M", jobs(false));
    record("keyed at 2 M", jobs(true));
    Psql readers[] = {Psql(with.url), Psql(without.url)};
    for (Psql& reader : readers) {
      reader.run("BEGIN ISOLATION LEVEL REPEATABLE READ");
      reader.run("SELECT count(*) FROM (SELECT * FROM latchkey.job_runs LIMIT 10000) x");
    }
    record("snapshot", compare(with, without, pairs, [&](Side& side) { return rate_of_jobs(side, false, 2 * kJobs); }));
    for (Psql& reader : readers) reader.run("ROLLBACK");
    // At the end, as no worker takes the jobs that these rows leave in the queue.
    for (const bool duplicates : {false, true})
      record(duplicates ? "single-dup" : "single", compare(with, without, pairs, [duplicates](Side& side) {
               return Singles(side.bench.store(), duplicates, side.key += kHistory).run(2);
             }));
  }
  Psql(url).run("DROP DATABASE " + name + " WITH (FORCE)");
  fmt::print("{{{}}}\n", found);
}

}  // namespace latchkey::bench
