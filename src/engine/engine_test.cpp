#include "engine/engine.hpp"

#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <sstream>

#include "engine/await.hpp"
#include "engine/testing.hpp"
#include "engine/validate.hpp"
#include "simulation/queued_store.hpp"

namespace latchkey {
namespace {

using namespace std::chrono_literals;

struct EngineTest : testing::Test {
  ClaimReply claim_now(ClaimRequest request) { return *play(bench, claim(engine, std::move(request))); }
  void complete(const ClaimReply& reply, Bytes result) {
    const Won& won = std::get<Won>(reply);
    std::vector<SettleRequest> settles{{"default", won.run.id(), won.fence, Complete{std::move(result), {}}}};
    ASSERT_TRUE(play(bench, settle(engine, std::move(settles))));
  }
  KeyName name_of(const ClaimRequest& request) {
    return {request.tenant, request.function, request.key, request.key_hash};
  }
  Bench bench;
  Engine engine{bench.store, bench.clock, {}};
};

TEST_F(EngineTest, ReplaysFromMemoryUntilTheWindowEnds) {
  ClaimRequest request = claim_of("a");
  request.window = 10s;
  request.fingerprint = sha256("body");
  complete(claim_now(request), "42");
  EXPECT_EQ(std::get<Replay>(claim_now(request)).run.as<Completed>()->result, "42");
  EXPECT_EQ(engine.replays_from_memory(), 1u);
  ClaimRequest other = request;
  other.fingerprint = sha256("another");
  EXPECT_TRUE(std::holds_alternative<Mismatch>(claim_now(other)));
  play(bench, [](Clock& clock) -> Task<bool> {
    co_await clock.wait(10s);
    co_return true;
  }(bench.clock));
  EXPECT_TRUE(std::holds_alternative<Won>(claim_now(other)));
}

TEST_F(EngineTest, ExplainsSuppressedRepeats) {
  ClaimRequest request = claim_of("a");
  request.caller = "cron";
  const ClaimReply won = claim_now(request);
  claim_now(request);
  complete(won, "42");
  claim_now(request);
  const auto answer = engine.explain_key(name_of(request));
  ASSERT_TRUE(answer && *answer);
  const Duplicates& suppressed = (*answer)->suppressed;
  ASSERT_EQ(suppressed.counts.size(), 2u);
  EXPECT_EQ(suppressed.counts[0].reason, "ALREADY_RUNNING");
  EXPECT_EQ(suppressed.counts[1].reason, "REPLAYED");
  EXPECT_EQ(suppressed.latest.back().caller, "cron");
  EXPECT_FALSE(*engine.explain_key({"other", "f", "a", sha256("nothing")}));
}

TEST_F(EngineTest, MaintenanceRunsUntilCancelled) {
  ClaimRequest request = claim_of("a");
  request.lease = 2s;
  request.on_doubt = OnDoubt::hold;
  claim_now(request);
  claim_now(request);
  asio::cancellation_signal stop;
  bool ended = false;
  asio::co_spawn(bench.io, engine.run_maintenance(),
                 asio::bind_cancellation_slot(stop.slot(), [&](std::exception_ptr broken) {
                   EXPECT_FALSE(broken);
                   ended = true;
                 }));
  while (bench.clock.elapsed() < 5s) {
    bench.io.restart();
    bench.io.poll();
    bench.clock.leap();
  }
  const auto run = bench.store.find_latest(name_of(request));
  EXPECT_TRUE((*run)->as<InDoubt>());
  EXPECT_EQ((*bench.store.find_duplicates((*run)->id()))->counts.front().count, 1u);
  stop.emit(asio::cancellation_type::terminal);
  bench.run();
  EXPECT_TRUE(ended);
}

TEST_F(EngineTest, StopDuringSweepLogsNothing) {
  sim::QueuedStore waiting(bench.store);  // replies when step() is called
  Engine engine_on_queue{waiting, bench.clock, {}};
  ClaimRequest request = claim_of("a");
  request.lease = 2s;
  request.on_doubt = OnDoubt::hold;
  claim_now(request);
  std::ostringstream log;
  const auto before = spdlog::default_logger();
  spdlog::set_default_logger(
      std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(log)));
  asio::cancellation_signal stop;
  bool ended = false;
  asio::co_spawn(bench.io, engine_on_queue.run_maintenance(),
                 asio::bind_cancellation_slot(stop.slot(), [&](std::exception_ptr broken) {
                   EXPECT_FALSE(broken);
                   ended = true;
                 }));
  bench.run();  // until the sweep waits for the store
  EXPECT_GE(bench.clock.elapsed(), 2s);
  EXPECT_FALSE(ended);
  stop.emit(asio::cancellation_type::terminal);
  bench.run();
  spdlog::set_default_logger(before);
  EXPECT_TRUE(ended);
  EXPECT_EQ(log.str(), "");
  waiting.step();
}

TEST_F(EngineTest, SweepDoesNotWaitForDuplicates) {
  sim::QueuedStore waiting(bench.store);
  Engine engine_on_queue{waiting, bench.clock, {}};
  ClaimRequest request = claim_of("a");
  request.lease = 2s;
  request.on_doubt = OnDoubt::hold;
  for (int i = 0; i < 2; ++i) {
    engine_on_queue.claim(request, [](const Result<ClaimReply>& reply) { EXPECT_TRUE(reply); });
    waiting.step();
  }
  asio::cancellation_signal stop;
  asio::co_spawn(bench.io, engine_on_queue.run_maintenance(),
                 asio::bind_cancellation_slot(stop.slot(), [](std::exception_ptr broken) { EXPECT_FALSE(broken); }));
  bench.run();
  EXPECT_GE(bench.clock.elapsed(), 2s);
  EXPECT_EQ(waiting.step(), 2u) << "both are at the store, and neither waits for the other";
  const auto run = bench.store.find_latest(name_of(request));
  EXPECT_TRUE((*run)->as<InDoubt>());
  EXPECT_EQ((*bench.store.find_duplicates((*run)->id()))->counts.front().count, 1u);
  stop.emit(asio::cancellation_type::terminal);
  bench.run();
  waiting.step();
}

TEST_F(EngineTest, RefusesOnlyRequestsBeyondLimits) {
  ClaimRequest bad = claim_of(std::string(513, 'k'));
  EXPECT_EQ(play(bench, claim(engine, bad)).error().code, Code::INVALID_ARGUMENT);
  std::vector<EnqueueRequest> jobs(3);
  for (EnqueueRequest& job : jobs) job.function = "f";
  jobs[1].priority = 101;
  const auto replies = play(bench, enqueue(engine, jobs));
  EXPECT_TRUE(std::holds_alternative<Enqueued>((*replies)[0]));
  EXPECT_EQ(std::get<Error>((*replies)[1]).code, Code::INVALID_ARGUMENT);
  EXPECT_TRUE(std::holds_alternative<Enqueued>((*replies)[2]));
}

TEST(Validate, ErrorNamesTheInvalidMember) {
  const auto fault = [](auto change) {
    ClaimRequest request = claim_of("a");
    change(request);
    return find_fault(request);
  };
  EXPECT_FALSE(fault([](ClaimRequest&) {}));
  EXPECT_FALSE(fault([](ClaimRequest& r) { r.key = "größe ✓"; }));
  for (const auto& bad :
       {fault([](ClaimRequest& r) { r.tenant = "a/b"; }), fault([](ClaimRequest& r) { r.tenant = ""; }),
        fault([](ClaimRequest& r) { r.function = ""; }), fault([](ClaimRequest& r) { r.function = "a\nb"; }),
        fault([](ClaimRequest& r) { r.function = std::string(129, 'f'); }),
        fault([](ClaimRequest& r) { r.key = "a\x7f"; }), fault([](ClaimRequest& r) { r.key = "\xff"; }),
        fault([](ClaimRequest& r) { r.lease = 999ms; }), fault([](ClaimRequest& r) { r.lease = 25h; }),
        fault([](ClaimRequest& r) { r.window = 24h * 3654; }), fault([](ClaimRequest& r) { r.window = -1ms; })}) {
    ASSERT_TRUE(bad);
    EXPECT_EQ(bad->code, Code::INVALID_ARGUMENT);
    EXPECT_NE(bad->detail.find('`'), std::string::npos) << bad->detail;
  }
  EXPECT_EQ(fault([](ClaimRequest& r) { r.input = std::string(kBodyBytesMax + 1, 'x'); })->code, Code::BODY_TOO_LARGE);
}

TEST(OutcomeCache, EvictsOutcomesWithoutRequests) {
  OutcomeCache cache(1 << 20);
  const Instant now = from_ms(1'770'372'000'000);
  const auto done = [&](int i) {
    const ClaimRequest request = claim_of(std::to_string(i));
    auto head = std::make_shared<RunHead>();
    head->id = make_uuid_v7(now, static_cast<std::uint64_t>(i), 0);
    head->tenant = request.tenant, head->function = request.function, head->key = request.key;
    head->key_hash = request.key_hash, head->guard = Guard::once;
    latchkey::Run run{.head = head, .state = Completed{now, std::string(500, 'x')}};
    return run;
  };
  cache.add(done(0), now);
  for (int i = 1; i < 10'000; ++i) {
    cache.add(done(i), now);
    EXPECT_TRUE(cache.find(claim_of("0"), now)) << i;
  }
  EXPECT_LE(cache.bytes(), std::size_t{1} << 20);
  EXPECT_FALSE(cache.find(claim_of("1"), now));
  ClaimRequest unguarded = claim_of("0");
  unguarded.guard = Guard::none;
  EXPECT_FALSE(cache.find(unguarded, now));
  EXPECT_FALSE(cache.find(claim_of("0"), now + kDefaultWindow));
}

TEST(Suppressions, CountsWithinBounds) {
  Suppressions seen(64);
  const Instant now = from_ms(1'000);
  for (std::uint64_t i = 0; i < 1'000; ++i) seen.note(make_uuid_v7(now, i, i), kReplayed, "me", now);
  EXPECT_GT(seen.forgotten(), 0u);
  auto notes = seen.drain();
  EXPECT_LE(notes.size(), 64u);
  EXPECT_EQ(notes.size() + seen.forgotten(), 1'000u);
  const RunId one = notes.front().run;
  seen.note(one, kReplayed, "late", now + 1s);
  seen.restore(std::move(notes));
  EXPECT_EQ(seen.find(one).counts.front().count, 2u);
  EXPECT_EQ(seen.find(one).counts.front().first, now);
  for (int i = 0; i < 100; ++i) seen.note(one, kReplayed, std::to_string(i), now);
  EXPECT_EQ(seen.find(one).counts.front().count, 102u);
}

}  // namespace
}  // namespace latchkey
