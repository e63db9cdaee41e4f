// A store closes during a settlement while its server does not respond: from any of its round trips on, on one
// connection or on all, and beside a user's transaction that has locked the run. The reply is correct, a retry on
// another store gets the real state, and the run is settled once.
#include <spdlog/spdlog.h>

#include "conformance/store_test.hpp"
#include "support/postgres/fault_proxy.hpp"
#include "support/postgres/pg_stores.hpp"

namespace latchkey {
namespace {

struct Silence {
  FaultAt at = FaultAt::never;
  std::uint64_t after = 0;
  enum class Of : std::uint8_t { one_connection, all } of = Of::one_connection;
  bool is_locked = false;
};

class ShutdownWalk : public PostgresStores {
 protected:
  enum class Outcome { nothing_changed, unknown, changed };
  struct Ending {
    bool has_fired = false;
    Outcome outcome = Outcome::nothing_changed;  // as the reply states
    bool changed_after = false;                  // by the retry
  };
  using Answer = Result<std::vector<SettleReply>>;

  ShutdownWalk() { spdlog::set_level(spdlog::level::off); }
  ~ShutdownWalk() override { spdlog::set_level(spdlog::level::info); }

  static Outcome outcome_of(const Answer& answer) {
    if (answer) {
      EXPECT_TRUE(std::get<Settled>(answer->front()).changed);
      return Outcome::changed;
    }
    EXPECT_EQ(answer.error().code, Code::STORE_UNAVAILABLE);
    const bool is_unknown = answer.error().detail.contains("commit status unknown");
    EXPECT_TRUE(is_unknown || answer.error().detail.contains("nothing was changed")) << answer.error().detail;
    return is_unknown ? Outcome::unknown : Outcome::nothing_changed;
  }

  Ending play(const Silence& silence, const std::string& key) {
    FaultProxy proxy(PgServer::instance().port());
    auto store = open(proxy.url(database()),
                      {.writers = 1, .readers = 1, .patience = 10min, .reply_max = 10min, .close_max = 400ms});
    const Won own = std::get<Won>(Verbs(*other_).claim(a_claim(key)));
    std::optional<PgClient> blocker;
    if (silence.is_locked) {
      blocker.emplace(url());
      const auto rows =
          blocker->ask("BEGIN; SELECT s.seq FROM latchkey.states s JOIN latchkey.runs r USING (seq) WHERE r.key = '" +
                       key + "' FOR UPDATE OF s");
      EXPECT_EQ(rows.size(), 1u);
    }
    const SettleRequest request{
        {},
        own.run.id(),
        own.fence,
        Complete{"r", {{.function = "next", .input = key}, {.function = "next", .input = key}}}};
    proxy.arm(ConnectionFault{silence.at, FaultHow::blackhole, silence.after});
    auto promise = std::make_shared<std::promise<Answer>>();
    auto answer = promise->get_future();
    store->settle({request}, [promise](Answer reply) { promise->set_value(std::move(reply)); });
    while (proxy.fired() == 0 && answer.wait_for(1ms) != std::future_status::ready) {
    }
    const bool has_fired = proxy.fired() > 0;
    if (silence.of == Silence::Of::all) proxy.blackhole_all();
    const Duration start = clock_.elapsed();
    store->begin_shutdown();
    store.reset();
    EXPECT_LT(clock_.elapsed() - start, 10s);
    if (answer.wait_for(0s) != std::future_status::ready) throw std::runtime_error("the call got no reply");
    proxy.cut_all();
    blocker.reset();
    const Outcome outcome = outcome_of(answer.get());
    return {has_fired, outcome, std::get<Settled>(Verbs(*other_).settle(request)).changed};
  }

  // Runs all cases concurrently, because each one waits for seconds.
  std::vector<Ending> play_all(const std::vector<Silence>& silences) {
    const std::size_t first = std::exchange(keys_, keys_ + silences.size());
    const auto key_of = [first](std::size_t i) { return "k" + std::to_string(first + i); };
    std::vector<std::future<Ending>> played;
    for (std::size_t i = 0; i < silences.size(); ++i)
      played.push_back(std::async(std::launch::async, [&, i] { return play(silences[i], key_of(i)); }));
    std::vector<Ending> endings;
    PgClient admin(url());
    for (std::size_t i = 0; i < silences.size(); ++i) {
      const Silence& silence = silences[i];
      SCOPED_TRACE("fault at " + std::to_string(static_cast<int>(silence.at)) + " number " +
                   std::to_string(silence.after) + (silence.of == Silence::Of::all ? ", all" : ", one") +
                   (silence.is_locked ? ", locked" : ""));
      const Ending& ending = endings.emplace_back(played[i].get());
      if (ending.outcome != Outcome::unknown)
        EXPECT_NE(ending.outcome == Outcome::changed, ending.changed_after) << "the reply or the retry is wrong";
      const std::string name = "'" + key_of(i) + "'";
      EXPECT_EQ(admin.ask_one("SELECT count(*) FROM latchkey.runs WHERE function = 'next' AND input = " + name), "2")
          << "the follow-ups of one settlement, once";
      EXPECT_EQ(admin.ask_one("SELECT convert_from(s.result, 'UTF8') FROM latchkey.all_states s JOIN latchkey.runs r "
                              "USING (seq) WHERE r.key = " +
                              name),
                "r");
    }
    return endings;
  }

  std::size_t keys_ = 0;
  std::unique_ptr<Store> other_ = open(url());
};

// The faults cover all round trips of the settlement and some after it.
TEST_F(ShutdownWalk, SilenceAtAnyRoundTripSettlesOnce) {
  constexpr std::uint64_t kBeyond = 12;
  std::map<Outcome, int> counts;
  for (const auto of : {Silence::Of::one_connection, Silence::Of::all}) {
    std::vector<Silence> silences{{FaultAt::commit_request, 0, of}, {FaultAt::commit_reply, 0, of}};
    for (std::uint64_t n = 0; n < kBeyond; ++n)
      for (const FaultAt at : {FaultAt::trip_request, FaultAt::trip_reply}) silences.push_back({at, n, of});
    const auto endings = play_all(silences);
    EXPECT_FALSE(endings.at(1).changed_after) << "the settlement had committed";
    EXPECT_FALSE(endings.back().has_fired) << "there are more round trips than faults";
    for (const Ending& ending : endings) counts[ending.outcome] += 1;
  }
  for (const Outcome each : {Outcome::nothing_changed, Outcome::unknown, Outcome::changed}) EXPECT_GT(counts[each], 0);
}

// The server stops responding while the store retries to lock the run.
TEST_F(ShutdownWalk, LockedRunIsNotSettled) {
  std::vector<Silence> silences;
  for (const auto of : {Silence::Of::one_connection, Silence::Of::all})
    for (std::uint64_t n = 0; n < 20; n += 2)
      silences.push_back({n % 4 ? FaultAt::trip_request : FaultAt::trip_reply, n, of, true});
  for (const Ending& ending : play_all(silences)) {
    EXPECT_TRUE(ending.has_fired);
    EXPECT_EQ(ending.outcome, Outcome::nothing_changed) << "the store never had the lock";
    EXPECT_TRUE(ending.changed_after);
  }
}

// The store fails the call only if it certainly did not write the counts, because the caller then writes them again.
TEST_F(ShutdownWalk, DuplicatesAreNotCountedTwice) {
  for (const FaultAt at : {FaultAt::commit_request, FaultAt::commit_reply, FaultAt::trip_request}) {
    SCOPED_TRACE(static_cast<int>(at));
    FaultProxy proxy(PgServer::instance().port());
    auto store = open(proxy.url(database()), {.writers = 1, .readers = 1, .reply_max = 10min, .close_max = 400ms});
    const Won own = std::get<Won>(Verbs(*other_).claim(a_claim("k" + std::to_string(static_cast<int>(at)))));
    const Instant now = other_->now();
    const std::vector<DuplicateNote> notes{{own.run.id(), {.counts = {{"REPLAYED", 5, now, now}}, .latest = {}}}};
    proxy.arm(ConnectionFault{at, FaultHow::blackhole});
    auto promise = std::make_shared<std::promise<Result<std::monostate>>>();
    auto answer = promise->get_future();
    store->note_duplicates(notes, [promise](Result<std::monostate> reply) { promise->set_value(std::move(reply)); });
    while (proxy.fired() == 0 && answer.wait_for(1ms) != std::future_status::ready) {
    }
    proxy.blackhole_all();
    store.reset();
    proxy.cut_all();
    // Retries as the engine does.
    const bool has_failed = !answer.get();
    if (has_failed) Verbs(*other_).note(notes.front());
    const auto seen = other_->find_duplicates(own.run.id()).value();
    EXPECT_EQ(has_failed, at == FaultAt::trip_request);
    if (at == FaultAt::commit_request) {
      EXPECT_FALSE(seen) << "the counts were committed despite the fault";
    } else {
      ASSERT_TRUE(seen);
      EXPECT_EQ(seen->counts.at(0).count, 5u);
    }
  }
}

}  // namespace
}  // namespace latchkey
