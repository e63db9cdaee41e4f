// Many threads at once: each key has one winner, and each fence is used once. Also runs under ThreadSanitizer.
#include <array>
#include <latch>
#include <mutex>
#include <set>
#include <thread>

#include "base/random.hpp"
#include "conformance/store_test.hpp"

namespace latchkey {
namespace {

class Concurrent : public StoreTest {
 protected:
  static void together(int threads, auto work) {
    std::latch start(threads);
    std::vector<std::jthread> running;  // joined before `start` is destroyed
    for (int i = 0; i < threads; ++i)
      running.emplace_back([&, i] {
        start.arrive_and_wait();
        work(i);
      });
  }
};
LK_CONFORMANCE(Concurrent);

// covers: B13, C9
TEST_P(Concurrent, OneKeyHasOneWinner) {
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> won{0}, busy{0};
    together(8, [&](int) {
      const ClaimReply reply = verbs().claim(a_claim("k" + std::to_string(round)));
      if (std::holds_alternative<Won>(reply)) ++won;
      if (std::holds_alternative<Busy>(reply)) ++busy;
    });
    EXPECT_EQ(won, 1);
    EXPECT_EQ(busy, 7);
  }
}

TEST_P(Concurrent, FencesAreUniqueAndRiseForEveryCaller) {
  std::mutex mutex;
  std::set<Fence> fences;
  std::atomic<int> falls{0};
  together(8, [&](int thread) {
    Fence last{0};
    for (int i = 0; i < 50; ++i) {
      const Won won = win(a_claim(std::to_string(thread) + ":" + std::to_string(i)));
      if (won.fence <= last) ++falls;
      last = won.fence;
      end(won, Complete{std::to_string(i), {}});
      const std::lock_guard lock(mutex);
      fences.insert(won.fence);
    }
  });
  EXPECT_EQ(falls, 0);
  EXPECT_EQ(fences.size(), 400u);
  EXPECT_EQ(store().list({.status = Status::completed, .limit = 1000}).value().runs.size(), 400u);
}

TEST_P(Concurrent, OneSettlementOfOneRunIsAccepted) {
  for (int round = 0; round < 20; ++round) {
    const Won won = win(a_claim("k" + std::to_string(round)));
    std::atomic<int> changed{0}, repeated{0}, refused{0};
    together(6, [&](int thread) {
      const Ending ending = thread % 2 ? Ending{Complete{std::to_string(thread), {}}} : Ending{permanent()};
      const SettleReply reply = verbs().settle({{}, won.run.id(), won.fence, ending});
      if (const auto* settled = std::get_if<Settled>(&reply)) {
        ++(settled->changed ? changed : repeated);
      } else if (code_of(reply) == Code::ALREADY_SETTLED) {
        ++refused;
      }
    });
    EXPECT_EQ(changed, 1);
    EXPECT_EQ(repeated, 2);
    EXPECT_EQ(refused, 3);
  }
}

TEST_P(Concurrent, EveryJobIsTakenOnce) {
  std::vector<EnqueueRequest> batch;
  for (int i = 0; i < 400; ++i) batch.push_back(a_job("k" + std::to_string(i)));
  verbs().enqueue_all(batch);
  std::mutex mutex;
  std::multiset<RunId> owned;
  together(8, [&](int) {
    for (;;) {
      const auto taken = take_up_to(7);
      if (taken.empty()) return;
      for (const Taken& one : taken) end(one);
      const std::lock_guard lock(mutex);
      for (const Taken& one : taken) owned.insert(one.run.id());
    }
  });
  EXPECT_EQ(owned.size(), 400u);
  EXPECT_EQ(std::set<RunId>(owned.begin(), owned.end()).size(), 400u);
}

// Heartbeats, settles, sweeps, claims and reads of a few keys while leases expire.
TEST_P(Concurrent, RacesLeaveEveryRunConsistent) {
  std::atomic<int> completions{0};
  std::array<std::atomic<int>, 4> by_key{};
  together(6, [&](int thread) {
    SeededRandom random(thread + 1);
    for (int i = 0; i < 150; ++i) {
      const int key = static_cast<int>(random.below(by_key.size()));
      const ClaimReply reply = verbs().claim(a_claim("k" + std::to_string(key)));
      if (random.one_in(4)) advance(30s);
      if (random.one_in(8)) verbs().sweep(10);
      store().list({.limit = 5}).value();
      const auto* won = std::get_if<Won>(&reply);
      if (!won) continue;
      verbs().extend({{}, won->run.id(), won->fence, {}});
      if (random.one_in(2)) continue;  // vanish
      const SettleReply settled = verbs().settle({{}, won->run.id(), won->fence, Complete{"r", {}}});
      if (const auto* done = std::get_if<Settled>(&settled); done && done->changed) ++completions, ++by_key[key];
    }
  });
  // The window is a day, and the clock advances less than that except in very long races.
  const auto listed = store().list({.status = Status::completed, .limit = 1000}).value().runs;
  EXPECT_EQ(listed.size(), static_cast<std::size_t>(completions));
  EXPECT_GE(completions, 1);
  if (now() < kNoon + 24h)
    for (const auto& count : by_key) EXPECT_LE(count, 1);
}

}  // namespace
}  // namespace latchkey
