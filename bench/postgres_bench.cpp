// Latchkey's rows of the PostgreSQL table:
//   postgres_bench jobs|keyed N URL | single|single-dup S URL | snapshot S URL BEFORE | grow N URL
//                  | guard S URL | letters N URL | security PAIRS URL | purge ROUNDS URL
#include "postgres_bench.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <thread>

#include "bench.hpp"
#include "postgres_load.hpp"

namespace latchkey::bench {
namespace {

using namespace std::chrono_literals;

std::string join(const std::vector<double>& rates) {
  std::string text;
  for (const double rate : rates) text += (text.empty() ? "" : ", ") + fmt::format("{:.0f}", rate);
  return "[" + text + "]";
}

void run_snapshot(const std::string& url, double seconds, double before) {
  Bench bench(url);
  Jobs jobs(bench.store(), ~0ULL, false, 0, 20'000);
  jobs.begin();
  const auto watch = [&](double span) {
    std::vector<double> rates;
    for (double passed = 0; passed < span; passed += 10) {
      const auto start = Stopwatch::now();
      const auto settled = jobs.settled();
      std::this_thread::sleep_for(10s);
      rates.push_back(static_cast<double>(jobs.settled() - settled) / seconds_since(start));
    }
    return rates;
  };
  const auto rates = watch(before);
  Psql holder(url);
  holder.run("BEGIN ISOLATION LEVEL REPEATABLE READ");
  holder.run("SELECT count(*) FROM (SELECT * FROM latchkey.job_runs LIMIT 10000) x");
  const auto held = watch(seconds);
  holder.run("ROLLBACK");
  fmt::print("{{\"before\": {}, \"held\": {}}}\n", join(rates), join(held));
  std::fflush(stdout);
  std::_Exit(0);
}

// Rates of both kinds of jobs on a store that grows by N keyed runs in four steps, each beside an empty one in turn:
// the machine is not equally fast from minute to minute.
void run_grow(const std::string& url, std::uint64_t runs) {
  constexpr std::uint64_t kJobs = 50'000;
  constexpr int kPairs = 11;
  Bench bench(url);
  const std::string empty = url + "_empty", name = empty.substr(empty.rfind('/') + 1);
  Psql hand(url);
  std::uint64_t key = 0;
  std::string steps;
  for (int step = 0; step <= 4; ++step) {
    const std::uint64_t to = runs * static_cast<std::uint64_t>(step) / 4;
    if (to > key) Jobs(bench.store(), to - key, true, key).run();
    key = std::max(key, to);
    hand.run("CREATE DATABASE " + name);
    std::vector<double> grown[2], fresh[2], ratios[2];
    {
      Bench beside(empty);
      Jobs(beside.store(), 5'000, false).run();
      for (int i = 0; i < kPairs; ++i)
        for (const int keyed : {0, 1}) {
          grown[keyed].push_back(Jobs(bench.store(), kJobs, keyed != 0, key).run());
          fresh[keyed].push_back(Jobs(beside.store(), kJobs, keyed != 0, key).run());
          ratios[keyed].push_back(grown[keyed].back() / fresh[keyed].back());
          if (keyed != 0) key += kJobs;
        }
    }
    hand.run("DROP DATABASE " + name + " WITH (FORCE)");
    steps += fmt::format(
        "{}{{\"runs\": {}, \"jobs_s\": {:.0f}, \"empty_jobs_s\": {:.0f}, \"jobs_over_empty\": {:.3f}, "
        "\"keyed_s\": {:.0f}, \"empty_keyed_s\": {:.0f}, \"keyed_over_empty\": {:.3f}}}",
        steps.empty() ? "" : ", ", to, percentile(grown[0], 0.5), percentile(fresh[0], 0.5), percentile(ratios[0], 0.5),
        percentile(grown[1], 0.5), percentile(fresh[1], 0.5), percentile(ratios[1], 0.5));
  }
  fmt::print("{{\"steps\": [{}]}}\n", steps);
}

int run(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  require(argc >= 4,
          "usage: postgres_bench jobs|keyed|single|single-dup|snapshot|grow|guard|letters|security|purge NUMBER URL");
  const auto number = std::strtoull(argv[2], nullptr, 10);
  const std::string url = argv[3], more = argc > 4 ? argv[4] : "";
  if (what == "jobs" || what == "keyed") {
    Bench bench(url);
    Jobs(bench.store(), 5'000, false).run();
    const double rate = Jobs(bench.store(), number, what == "keyed").run();
    fmt::print("{{\"jobs_s\": {:.0f}}}\n", rate);
  } else if (what == "single" || what == "single-dup") {
    Bench bench(url);
    Jobs(bench.store(), 5'000, false).run();
    fmt::print("{{\"enqueues_s\": {:.0f}}}\n",
               Singles(bench.store(), what == "single-dup").run(static_cast<double>(number)));
  } else if (what == "snapshot") {
    run_snapshot(url, static_cast<double>(number), more.empty() ? 60 : std::strtod(more.c_str(), nullptr));
  } else if (what == "grow") {
    run_grow(url, number);
  } else if (what == "guard") {
    run_guard(url, static_cast<int>(number));
  } else if (what == "letters") {
    run_letters(url, number);
  } else if (what == "security") {
    run_security(url, static_cast<int>(number));
  } else if (what == "purge") {
    run_purge(url, static_cast<int>(number));
  } else {
    require(false, "no such row: " + what);
  }
  return 0;
}

}  // namespace
}  // namespace latchkey::bench

int main(int argc, char** argv) { return latchkey::bench::run(argc, argv); }
