// Keys that an operator action has returned to an older run, over merges, purges and restarts.
#include "conformance/store_test.hpp"

namespace latchkey {
namespace {

class ReturnedKeys : public StoreTest {
 protected:
  static ClaimRequest a_lock(const std::string& key) {
    ClaimRequest request = a_claim(key);
    request.guard = Guard::while_running;
    request.fingerprint.reset();
    request.lease = 24h;
    request.retry.retries = 0;
    return request;
  }
  // Commits without a new run: a merge that is under way continues to the same end.
  void heartbeat(const Won& holder, int times) {
    for (int i = 0; i < times; ++i) verbs().extend({.id = holder.run.id(), .fence = holder.fence, .lease = 24h});
  }
};
LK_CONFORMANCE(ReturnedKeys);

TEST_P(ReturnedKeys, OlderRunOwnsItsKeyDuringEveryMerge) {
  const Won holder = win(a_lock("holder"));
  for (int before = 0; before < 5; ++before) {
    for (int beats = 0; beats < 5; ++beats) {
      const std::string name = std::to_string(before) + "-" + std::to_string(beats);
      for (int i = 0; i < before; ++i) end(win(a_claim("filler-" + name + "-" + std::to_string(i))));
      const Won older = win(a_lock(name));
      end(older, permanent());
      end(win(a_lock(name)));
      heartbeat(holder, beats);
      move(older.run.id(), RetryByHand{});
      heartbeat(holder, 8);
      opened().reopen();
      if (!opened().is_durable()) return;
      EXPECT_EQ(win(a_lock(name)).run.id(), older.run.id()) << name;
    }
  }
}

TEST_P(ReturnedKeys, PurgeErasesThePointerOfItsRun) {
  const Won holder = win(a_lock("holder"));
  const Won first = win(a_lock("k"));
  end(first, permanent());
  const Won second = win(a_lock("k"));
  end(second, permanent());
  move(first.run.id(), RetryByHand{});
  end(win(a_lock("k")));
  const auto dead_letters = store().list_dead_letters({}).value();
  ASSERT_EQ(dead_letters.entries.size(), 1u);
  ASSERT_TRUE(store().acknowledge({}, dead_letters.entries.front().id, "someone").value());
  advance(8 * 24h);
  verbs().purge();
  ASSERT_TRUE(is_gone(first.run.id()));
  ASSERT_FALSE(is_gone(second.run.id())) << "failed runs have a longer retention";
  move(second.run.id(), RetryByHand{});
  heartbeat(holder, 1);
  opened().reopen();
  if (!opened().is_durable()) return;
  EXPECT_EQ(win(a_lock("k")).run.id(), second.run.id());
}

}  // namespace
}  // namespace latchkey
