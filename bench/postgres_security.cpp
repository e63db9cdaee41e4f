// What row-level security costs: two stores in one process, of which one has it switched off behind its back, do the
// same in turn, so that whatever else the machine does falls on both. Each figure is the rate with it over the rate
// without.
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

// The ratios of so many pairs; who begins changes with each.
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
  const auto keep = [&](const std::string& row, const std::string& ratios) {
    found += (found.empty() ? "" : ", ") + fmt::format("\"{}\": {}", row, ratios);
    std::fprintf(stderr, "  security: %s %s\n", row.c_str(), ratios.c_str());
  };
  {
    Side with(url), without(plain);
    without.bench.switch_security_off();
    const auto jobs = [&](bool keyed) {
      return compare(with, without, pairs, [&](Side& side) { return rate_of_jobs(side, keyed, kJobs); });
    };
    keep("jobs", jobs(false));
    keep("keyed", jobs(true));
    // The middle of a call's times stands for them: the slowest hundredth is the machine's.
    keep("guard",
         compare(with, without, pairs, [](Side& side) { return 1 / percentile(time_guards(side.url, 2), 0.5); }));
    keep("letters", compare(with, without, pairs,
                            [](Side& side) { return 1 / percentile(time_letters(side.bench, side.url, 200), 0.5); }));
    for (Side* side : {&with, &without}) rate_of_jobs(*side, true, kHistory);
    keep("jobs at 2 M", jobs(false));
    keep("keyed at 2 M", jobs(true));
    Psql holders[] = {Psql(with.url), Psql(without.url)};
    for (Psql& holder : holders) {
      holder.run("BEGIN ISOLATION LEVEL REPEATABLE READ");
      holder.run("SELECT count(*) FROM (SELECT * FROM latchkey.job_runs LIMIT 10000) x");
    }
    keep("snapshot", compare(with, without, pairs, [&](Side& side) { return rate_of_jobs(side, false, 2 * kJobs); }));
    for (Psql& holder : holders) holder.run("ROLLBACK");
    // Last: what they leave in the queue is taken by nobody.
    for (const bool duplicates : {false, true})
      keep(duplicates ? "single-dup" : "single", compare(with, without, pairs, [duplicates](Side& side) {
             return Singles(side.bench.store(), duplicates, side.key += kHistory).run(2);
           }));
  }
  Psql(url).run("DROP DATABASE " + name + " WITH (FORCE)");
  fmt::print("{{{}}}\n", found);
}

}  // namespace latchkey::bench
