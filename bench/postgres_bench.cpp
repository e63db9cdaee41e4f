// Latchkey's rows of the PostgreSQL table:
//   postgres_bench jobs|keyed N URL [plain] | single|single-dup S URL | snapshot S URL BEFORE | grow N URL
//                  | guard S URL | letters N URL
// `plain`: with row-level security switched off behind the store's back, to see what it costs.
#include "postgres_bench.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <functional>
#include <thread>

#include "bench.hpp"
#include "keying/key_hash.hpp"

namespace latchkey::bench {
namespace {

using namespace std::chrono_literals;

EnqueueRequest job_of(std::optional<std::uint64_t> key) {
  EnqueueRequest job;
  job.function = "bench";
  job.input.assign(100, 'i');
  if (!key) return job;
  job.key = key_text(*key);
  job.guard = Guard::once;
  job.key_hash = compute_key_hash(job.tenant, job.function, job.key);
  return job;
}

// Producers and workers with one batch of 500 in flight each, at most so many waiting.
class Jobs {
 public:
  static constexpr std::uint64_t kBatch = 500;
  static constexpr unsigned kProducers = 2, kWorkers = 4;

  Jobs(Store& store, std::uint64_t jobs, bool keyed, std::uint64_t first_key = 0, std::uint64_t waiting_max = ~0ULL)
      : store_(store), jobs_(jobs), keyed_(keyed), next_key_(first_key), waiting_max_(waiting_max) {}

  double run() {
    const auto start = Stopwatch::now();
    begin();
    done_.acquire();
    return static_cast<double>(settled_.load()) / seconds_since(start);
  }
  void begin() {
    working_ = kWorkers;
    for (unsigned i = 0; i < kProducers; ++i) enqueue();
    for (unsigned i = 0; i < kWorkers; ++i) take();
  }
  void stop() {
    jobs_ = 0;
    done_.acquire();
  }
  std::uint64_t settled() const { return settled_; }

 private:
  void enqueue() {
    if (enqueued_ - settled_ >= waiting_max_) {
      const std::lock_guard lock(mutex_);
      idle_producers_ += 1;
      return;
    }
    if (enqueued_.fetch_add(kBatch) >= jobs_) return;
    std::vector<EnqueueRequest> batch;
    batch.reserve(kBatch);
    for (std::uint64_t i = 0; i < kBatch; ++i)
      batch.push_back(job_of(keyed_ ? std::optional(next_key_++) : std::nullopt));
    store_.enqueue(std::move(batch), [this](Result<std::vector<EnqueueReply>> replies) {
      require(replies.has_value(), "an enqueue failed");
      enqueue();
    });
  }
  void take() {
    store_.take({.functions = {"bench"}, .limit = kBatch, .session = make_uuid_v7({}, 1, 1)},
                [this](Result<std::vector<Taken>> taken) {
                  require(taken.has_value(), "a take failed");
                  settle(*taken);
                });
  }
  void settle(const std::vector<Taken>& taken) {
    if (taken.empty()) {
      if (settled_.load() < jobs_) return take();
      if (--working_ == 0) done_.release();
      return;
    }
    std::vector<SettleRequest> endings;
    endings.reserve(taken.size());
    for (const Taken& one : taken) endings.push_back({.id = one.run.id(), .fence = one.fence, .ending = Complete{}});
    store_.settle(std::move(endings), [this](Result<std::vector<SettleReply>> replies) {
      require(replies.has_value(), "a settle failed");
      for (const SettleReply& reply : *replies)
        require(std::holds_alternative<Settled>(reply) && std::get<Settled>(reply).changed, "a job was not settled");
      settled_ += replies->size();
      unsigned producers = 0;
      {
        const std::lock_guard lock(mutex_);
        if (idle_producers_ > 0) producers = 1, idle_producers_ -= 1;
      }
      for (; producers > 0; --producers) enqueue();
      take();
    });
  }

  Store& store_;
  std::atomic<std::uint64_t> jobs_;
  const bool keyed_;
  std::atomic<std::uint64_t> next_key_;
  const std::uint64_t waiting_max_;
  std::mutex mutex_;
  unsigned idle_producers_ = 0;
  std::atomic<std::uint64_t> enqueued_{0}, settled_{0};
  std::atomic<unsigned> working_{0};
  std::binary_semaphore done_{0};
};

// 50 callers that enqueue one job at a time. With duplicates every second call repeats the key of 201 calls before.
class Singles {
 public:
  Singles(Store& store, bool duplicates) : store_(store), duplicates_(duplicates) {}
  double run(double seconds) {
    constexpr unsigned kCallers = 50;
    left_ = kCallers;
    const auto start = Stopwatch::now();
    for (unsigned i = 0; i < kCallers; ++i) enqueue();
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    const std::uint64_t done = done_count_;
    const double rate = static_cast<double>(done) / seconds_since(start);
    closing_ = true;
    done_.acquire();
    return rate;
  }

 private:
  void enqueue() {
    if (closing_) {
      if (--left_ == 0) done_.release();
      return;
    }
    const std::uint64_t number = next_++;
    std::optional<std::uint64_t> key;
    if (duplicates_) key = number % 2 == 1 && number > 201 ? number - 201 : number;
    std::vector<EnqueueRequest> one;
    one.push_back(job_of(key));
    store_.enqueue(std::move(one), [this](Result<std::vector<EnqueueReply>> replies) {
      require(replies.has_value(), "an enqueue failed");
      ++done_count_;
      enqueue();
    });
  }

  Store& store_;
  const bool duplicates_;
  std::atomic<std::uint64_t> next_{0}, done_count_{0};
  std::atomic<bool> closing_{false};
  std::atomic<unsigned> left_{0};
  std::binary_semaphore done_{0};
};

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
  constexpr std::uint64_t kJobs = 100'000;
  constexpr int kPairs = 5;
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
  require(argc >= 4, "usage: postgres_bench jobs|keyed|single|single-dup|snapshot|grow|guard|letters NUMBER URL");
  const auto number = std::strtoull(argv[2], nullptr, 10);
  const std::string url = argv[3], more = argc > 4 ? argv[4] : "";
  if (what == "jobs" || what == "keyed") {
    Bench bench(url);
    if (more == "plain") bench.switch_security_off();
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
    run_guard(url, static_cast<double>(number));
  } else if (what == "letters") {
    run_letters(url, number);
  } else {
    require(false, "no such row: " + what);
  }
  return 0;
}

}  // namespace
}  // namespace latchkey::bench

int main(int argc, char** argv) { return latchkey::bench::run(argc, argv); }
