// How long one call takes, and how soon a dead letter is heard of.
#include <fmt/format.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <semaphore>
#include <thread>

#include "bench.hpp"
#include "keying/key_hash.hpp"
#include "postgres_bench.hpp"

namespace latchkey::bench {
namespace {

using namespace std::chrono_literals;

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

}  // namespace

// A claim through begin_run with its settlement after it; the claim alone is timed. Keys are new with every call.
std::vector<double> time_guards(const std::string& url, double seconds) {
  static std::atomic<int> calls{0};
  return time_calls(seconds, [&, nth = calls++](int thread) {
    const auto session = std::make_shared<Psql>(url);
    session->run("SET app.current_tenant = 'default'");
    return [session, thread, nth](int i) {
      std::string row;
      const double guard = timed_ms([&] {
        row = session->run(
            fmt::format("SELECT run::text || ' ' || fence FROM latchkey.begin_run('g', 'k{}-{}-{}')", nth, thread, i));
      });
      const auto space = row.find(' ');
      session->run(
          fmt::format("SELECT latchkey.complete_run('{}', {}, '{{}}')", row.substr(0, space), row.substr(space + 1)));
      return guard;
    };
  });
}

// The guard alone and with its settlement: through the SQL functions, and through the store as HTTP's handlers call it;
// and what one plain insert takes there, with an update of its row after it, as a commit waits for those of others. One
// after the other, each at 200/s.
void run_guard(const std::string& url, double seconds) {
  Bench bench(url);
  Psql(url).run("CREATE TABLE IF NOT EXISTS public.plain (id bigserial PRIMARY KEY, t text)");
  const auto plain = time_calls(seconds, [&](int) {
    const auto session = std::make_shared<Psql>(url);
    return [session](int) {
      std::string id;
      const double insert =
          timed_ms([&] { id = session->run("INSERT INTO public.plain (t) VALUES ('x') RETURNING id"); });
      session->run("UPDATE public.plain SET t = 'y' WHERE id = " + id);
      return insert;
    };
  });
  const auto guards = time_guards(url, seconds);
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
std::vector<double> time_letters(Bench& bench, const std::string& url, std::uint64_t count) {
  static std::atomic<std::uint64_t> next{0};
  Psql listener(url);
  listener.run("LISTEN dead_letter_inserted");
  std::vector<double> waits;
  for (std::uint64_t i = 0; i < count; ++i) {
    std::binary_semaphore answered{0};
    ClaimRequest claim;
    claim.function = fmt::format("f{}", i % 50);
    claim.key = fmt::format("k{}", next++);
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
  return waits;
}

void run_letters(const std::string& url, std::uint64_t count) {
  Bench bench(url);
  const auto waits = time_letters(bench, url, count);
  fmt::print("{{\"letter_p50_ms\": {:.2f}, \"letter_p99_ms\": {:.2f}}}\n", percentile(waits, 0.5),
             percentile(waits, 0.99));
}

}  // namespace latchkey::bench
