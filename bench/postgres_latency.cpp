// The times of single calls, and of the notification of a dead letter.
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

constexpr int kCallers = 4;
constexpr auto kEvery = 20ms;  // each of them: 200 calls a second in all

// One call of a caller; it returns its time in ms.
using Call = std::function<double(int number)>;

struct Times {
  std::vector<double> calls;
  std::vector<double> late;  // by how much the machine let a caller that slept go on too late, just before its call
};

// Calls of several kinds, each at 200/s, one second of each kind in turn. So the machine's stalls affect all kinds
// alike. The first second of each kind only warms it up.
std::vector<Times> time_in_turn(int rounds, const std::vector<std::function<Call(int caller)>>& kinds) {
  std::vector<Times> times(kinds.size());
  std::vector<std::vector<Call>> calls(kinds.size());
  for (std::size_t kind = 0; kind < kinds.size(); ++kind)
    for (int caller = 0; caller < kCallers; ++caller) calls[kind].push_back(kinds[kind](caller));
  std::mutex mutex;
  const auto run = [&](std::size_t kind, int caller, int round, Stopwatch::time_point start) {
    for (int i = 0; i < 1s / kEvery; ++i) {
      const auto at = start + i * kEvery + caller * kEvery / kCallers;
      std::this_thread::sleep_until(at);
      const double late = seconds_since(at) * 1e3;
      const double one = calls[kind][static_cast<std::size_t>(caller)](round * (1s / kEvery) + i);
      if (round == 0) continue;
      const std::lock_guard lock(mutex);
      times[kind].calls.push_back(one);
      times[kind].late.push_back(late);
    }
  };
  for (int round = 0; round <= rounds; ++round)
    for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
      std::vector<std::jthread> callers;
      for (int caller = 0; caller < kCallers; ++caller)
        callers.emplace_back(run, kind, caller, round, Stopwatch::now() + 5ms);
    }
  return times;
}

template <class Work>
double timed_ms(Work work) {
  const auto from = Stopwatch::now();
  work();
  return seconds_since(from) * 1e3;
}

// A claim through begin_run with its settlement after it; the claim alone is timed. Keys are new with every call.
std::function<Call(int)> guard_by(const std::string& url) {
  static std::atomic<int> kinds{0};
  return [url, nth = kinds++](int caller) {
    const auto session = std::make_shared<Psql>(url);
    session->run("SET app.current_tenant = 'default'");
    return [session, caller, nth](int i) {
      std::string row;
      const double guard = timed_ms([&] {
        row = session->run(
            fmt::format("SELECT run::text || ' ' || fence FROM latchkey.begin_run('g', 'k{}-{}-{}')", nth, caller, i));
      });
      const auto space = row.find(' ');
      session->run(
          fmt::format("SELECT latchkey.complete_run('{}', {}, '{{}}')", row.substr(0, space), row.substr(space + 1)));
      return guard;
    };
  };
}

// The same in the user's own transaction, with an effect between the two: what both calls add to it. The commit is the
// user's, with or without them.
std::function<Call(int)> guard_within_by(const std::string& url) {
  Psql(url).run("CREATE TABLE IF NOT EXISTS public.effects (id bigserial PRIMARY KEY, t text)");
  return [url](int caller) {
    const auto session = std::make_shared<Psql>(url);
    session->run("SET app.current_tenant = 'default'");
    return [session, caller](int i) {
      std::string row;
      session->run("BEGIN");
      double added = timed_ms([&] {
        row = session->run(
            fmt::format("SELECT format('%L, %s', run, fence) FROM latchkey.begin_run('w', 'k{}-{}')", caller, i));
      });
      session->run("INSERT INTO public.effects (t) VALUES ('x')");
      added += timed_ms([&] { session->run(fmt::format("SELECT latchkey.complete_run({}, '{{}}')", row)); });
      session->run("COMMIT");
      return added;
    };
  };
}

// One plain insert, with an update of its row after it: a commit waits for those of others.
std::function<Call(int)> insert_by(const std::string& url) {
  Psql(url).run("CREATE TABLE IF NOT EXISTS public.plain (id bigserial PRIMARY KEY, t text)");
  return [url](int) {
    return [session = std::make_shared<Psql>(url)](int) {
      std::string id;
      const double insert =
          timed_ms([&] { id = session->run("INSERT INTO public.plain (t) VALUES ('x') RETURNING id"); });
      session->run("UPDATE public.plain SET t = 'y' WHERE id = " + id);
      return insert;
    };
  };
}

// Through the store, as HTTP's handlers call it.
std::function<Call(int)> claim_by(Store& store) {
  return [&store](int caller) {
    return [&store, caller](int i) {
      ClaimRequest claim;
      claim.function = "h";
      claim.key = fmt::format("k{}-{}", caller, i);
      claim.key_hash = compute_key_hash(claim.tenant, claim.function, claim.key);
      std::optional<Won> won;
      std::binary_semaphore answered{0};
      const double guard = timed_ms([&] {
        store.claim(std::move(claim), [&](Result<ClaimReply> reply) {
          require(reply.has_value(), "a claim failed");
          won = std::get<Won>(*reply);
          answered.release();
        });
        answered.acquire();
      });
      store.settle({{.id = won->run.id(), .fence = won->fence, .ending = Complete{}}},
                   [&](Result<std::vector<SettleReply>> reply) {
                     require(reply.has_value(), "a settle failed");
                     answered.release();
                   });
      answered.acquire();
      return guard;
    };
  };
}

}  // namespace

std::vector<double> time_guards(const std::string& url, int seconds) {
  return time_in_turn(seconds, {guard_by(url)}).front().calls;
}

// The guard alone, through the SQL functions and through the store. Beside them a plain insert, and the delay with
// which the machine wakes up the callers.
void run_guard(const std::string& url, int seconds) {
  Bench bench(url);
  const auto times =
      time_in_turn(seconds, {insert_by(url), guard_by(url), claim_by(bench.store()), guard_within_by(url)});
  const Times &insert = times[0], &guard = times[1], &claim = times[2], &within = times[3];
  fmt::print(
      "{{\"insert_p50_ms\": {:.2f}, \"insert_p99_ms\": {:.2f}, \"guard_p50_ms\": {:.2f}, \"guard_p99_ms\": {:.2f}, "
      "\"claim_p50_ms\": {:.2f}, \"claim_p99_ms\": {:.2f}, \"within_p50_ms\": {:.2f}, "
      "\"within_p99_ms\": {:.2f}, \"late_p99_ms\": {:.2f}, \"count\": {}}}\n",
      percentile(insert.calls, 0.5), percentile(insert.calls, 0.99), percentile(guard.calls, 0.5),
      percentile(guard.calls, 0.99), percentile(claim.calls, 0.5), percentile(claim.calls, 0.99),
      percentile(within.calls, 0.5), percentile(within.calls, 0.99), percentile(guard.late, 0.99), guard.calls.size());
}

// From a settlement with a permanent failure to its notification, one at a time.
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
