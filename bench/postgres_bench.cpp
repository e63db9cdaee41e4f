// Latchkey's rows of the PostgreSQL table:
//   postgres_bench jobs|keyed N URL [plain] | single|single-dup S URL | snapshot S URL BEFORE | grow N URL
//                  | guard S URL | letters N URL
// `plain`: with row-level security switched off behind the store's back, to see what it costs.
#include <fmt/format.h>
#include <libpq-fe.h>
#include <poll.h>

#include <cstdlib>
#include <functional>
#include <mutex>
#include <thread>

#include "bench.hpp"
#include "keying/key_hash.hpp"
#include "migrations/open_postgres.hpp"

namespace latchkey::bench {
namespace {

using namespace std::chrono_literals;

void require(bool so, const std::string& what) {
  if (so) return;
  std::fprintf(stderr, "%s\n", what.c_str());
  std::exit(1);
}

// A session beside the store's own.
class Psql {
 public:
  explicit Psql(const std::string& url) : handle_(PQconnectdb(url.c_str()), &PQfinish) {
    require(PQstatus(handle_.get()) == CONNECTION_OK, PQerrorMessage(handle_.get()));
  }
  std::string run(const std::string& sql) {
    const std::unique_ptr<PGresult, decltype(&PQclear)> result(PQexec(handle_.get(), sql.c_str()), &PQclear);
    const auto status = PQresultStatus(result.get());
    require(status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK, sql + ": " + PQerrorMessage(handle_.get()));
    return PQntuples(result.get()) > 0 ? PQgetvalue(result.get(), 0, 0) : "";
  }
  // The next notification's payload.
  std::string listen() {
    while (true) {
      PQconsumeInput(handle_.get());
      if (PGnotify* found = PQnotifies(handle_.get())) {
        std::string payload = found->extra;
        PQfreemem(found);
        return payload;
      }
      pollfd wait{PQsocket(handle_.get()), POLLIN, 0};
      require(::poll(&wait, 1, 30'000) == 1, "no notification came");
    }
  }

 private:
  std::unique_ptr<PGconn, decltype(&PQfinish)> handle_;
};

class Bench {
 public:
  explicit Bench(const std::string& url) : url_(url) {
    auto opened = migrations::open_postgres({.url = url}, clock_, random_);
    require(opened.has_value(), opened ? "" : to_string(opened.error()));
    store_ = std::move(*opened);
  }
  Store& store() { return *store_; }
  void switch_security_off() {
    Psql(url_).run(
        "DO $$ DECLARE t regclass; BEGIN FOR t IN SELECT oid FROM pg_class WHERE relnamespace = "
        "'latchkey'::regnamespace "
        "AND relkind = 'r' LOOP EXECUTE format('ALTER TABLE %s DISABLE ROW LEVEL SECURITY', t); END LOOP; END $$");
  }

 private:
  const std::string url_;
  SystemClock clock_;
  SystemRandom random_;
  std::unique_ptr<PostgresStore> store_;
};

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

// 200 calls a second from four callers, each at its own times; how long each took, in ms, but for the first second.
std::vector<double> time_calls(double seconds, const std::function<std::function<double(int)>(int)>& caller) {
  std::mutex mutex;
  std::vector<double> all;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread)
    threads.emplace_back([&, thread] {
      const auto call = caller(thread);
      const auto start = Stopwatch::now();
      for (int i = 0; seconds_since(start) < seconds; ++i) {
        std::this_thread::sleep_until(start + i * 20ms + thread * 5ms);
        const bool is_warm = seconds_since(start) > 1;
        const double one = call(i);
        const std::lock_guard lock(mutex);
        if (is_warm) all.push_back(one);
      }
    });
  for (auto& thread : threads) thread.join();
  return all;
}

template <class Work>
double timed_ms(Work work) {
  const auto from = Stopwatch::now();
  work();
  return seconds_since(from) * 1e3;
}

// The guard alone and with its settlement: through the SQL functions, and through the store as HTTP's handlers call it;
// and what one plain insert takes there. One after the other, each at 200/s.
void run_guard(const std::string& url, double seconds) {
  Bench bench(url);
  Psql(url).run("CREATE TABLE IF NOT EXISTS public.plain (id bigserial PRIMARY KEY, t text)");
  const auto plain = time_calls(seconds, [&](int) {
    const auto session = std::make_shared<Psql>(url);
    return [session](int) { return timed_ms([&] { session->run("INSERT INTO public.plain (t) VALUES ('x')"); }); };
  });
  const auto guards = time_calls(seconds, [&](int thread) {
    const auto session = std::make_shared<Psql>(url);
    session->run("SET app.current_tenant = 'default'");
    return [session, thread](int i) {
      std::string row;
      const double guard = timed_ms([&] {
        row = session->run(
            fmt::format("SELECT run::text || ' ' || fence FROM latchkey.begin_run('g', 'k{}-{}')", thread, i));
      });
      const auto space = row.find(' ');
      session->run(
          fmt::format("SELECT latchkey.complete_run('{}', {}, '{{}}')", row.substr(0, space), row.substr(space + 1)));
      return guard;
    };
  });
  const auto claims = time_calls(seconds, [&](int thread) {
    return [&bench, thread](int i) {
      ClaimRequest claim;
      claim.function = "h";
      claim.key = fmt::format("k{}-{}", thread, i);
      claim.key_hash = compute_key_hash(claim.tenant, claim.function, claim.key);
      std::optional<Won> won;
      std::binary_semaphore answered{0};
      const double guard = timed_ms([&] {
        bench.store().claim(std::move(claim), [&](Result<ClaimReply> reply) {
          require(reply.has_value(), "a claim failed");
          won = std::get<Won>(*reply);
          answered.release();
        });
        answered.acquire();
      });
      bench.store().settle({{.id = won->run.id(), .fence = won->fence, .ending = Complete{}}},
                           [&](Result<std::vector<SettleReply>> reply) {
                             require(reply.has_value(), "a settle failed");
                             answered.release();
                           });
      answered.acquire();
      return guard;
    };
  });
  fmt::print(
      "{{\"insert_p50_ms\": {:.2f}, \"insert_p99_ms\": {:.2f}, \"guard_p50_ms\": {:.2f}, \"guard_p99_ms\": {:.2f}, "
      "\"claim_p50_ms\": {:.2f}, \"claim_p99_ms\": {:.2f}, \"count\": {}}}\n",
      percentile(plain, 0.5), percentile(plain, 0.99), percentile(guards, 0.5), percentile(guards, 0.99),
      percentile(claims, 0.5), percentile(claims, 0.99), guards.size());
}

// From the settlement that fails for good to its notification, one at a time.
void run_letters(const std::string& url, std::uint64_t count) {
  Bench bench(url);
  Psql listener(url);
  listener.run("LISTEN dead_letter_inserted");
  std::vector<double> waits;
  for (std::uint64_t i = 0; i < count; ++i) {
    std::binary_semaphore answered{0};
    ClaimRequest claim;
    claim.function = fmt::format("f{}", i % 50);
    claim.key = fmt::format("k{}", i);
    claim.key_hash = compute_key_hash(claim.tenant, claim.function, claim.key);
    std::optional<Won> won;
    bench.store().claim(std::move(claim), [&](Result<ClaimReply> reply) {
      won = std::get<Won>(reply.value());
      answered.release();
    });
    answered.acquire();
    const auto from = Stopwatch::now();
    bench.store().settle(
        {{.id = won->run.id(), .fence = won->fence, .ending = Fail{.message = "no", .retryable = false}}},
        [](Result<std::vector<SettleReply>> reply) { require(reply.has_value(), "a settle failed"); });
    listener.listen();
    waits.push_back(seconds_since(from) * 1e3);
  }
  fmt::print("{{\"letter_p50_ms\": {:.2f}, \"letter_p99_ms\": {:.2f}}}\n", percentile(waits, 0.5),
             percentile(waits, 0.99));
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
