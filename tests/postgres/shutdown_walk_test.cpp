// A store that is closed while its server says nothing, with a settlement on its way: silent from any of its round
// trips on, on that connection alone or on all, and beside somebody's transaction that holds the run. What it says is
// so; whoever asks again, of another server, finds the truth; and there is one settlement.
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
  bool is_held = false;
};

class PostgresCloseWalk : public PostgresStores {
 protected:
  enum class Told { nothing_changed, unknown, changed };
  struct Ending {
    bool struck = false;
    Told told = Told::nothing_changed;
    bool changed_after = false;  // by who asked again
  };
  using Answer = Result<std::vector<SettleReply>>;

  PostgresCloseWalk() { spdlog::set_level(spdlog::level::off); }
  ~PostgresCloseWalk() override { spdlog::set_level(spdlog::level::info); }

  static Told told_by(const Answer& answer) {
    if (answer) {
      EXPECT_TRUE(std::get<Settled>(answer->front()).changed);
      return Told::changed;
    }
    EXPECT_EQ(answer.error().code, Code::STORE_UNAVAILABLE);
    const bool is_unknown = answer.error().detail.contains("commit status unknown");
    EXPECT_TRUE(is_unknown || answer.error().detail.contains("nothing was changed")) << answer.error().detail;
    return is_unknown ? Told::unknown : Told::nothing_changed;
  }

  Ending play(const Silence& silence, const std::string& key) {
    FaultProxy proxy(PgServer::instance().port());
    auto store = open(proxy.url(database()),
                      {.writers = 1, .readers = 1, .patience = 10min, .reply_max = 10min, .close_max = 400ms});
    const Won own = std::get<Won>(Verbs(*other_).claim(a_claim(key)));
    std::optional<PgClient> holder;
    if (silence.is_held) {
      holder.emplace(url());
      const auto rows =
          holder->ask("BEGIN; SELECT s.seq FROM latchkey.states s JOIN latchkey.runs r USING (seq) WHERE r.key = '" +
                      key + "' FOR UPDATE OF s");
      EXPECT_EQ(rows.size(), 1u);
    }
    const SettleRequest request{
        {},
        own.run.id(),
        own.fence,
        Complete{"r", {{.function = "next", .input = key}, {.function = "next", .input = key}}}};
    proxy.arm(ConnectionFault{silence.at, FaultHow::swallow, silence.after});
    auto promise = std::make_shared<std::promise<Answer>>();
    auto answer = promise->get_future();
    store->settle({request}, [promise](Answer reply) { promise->set_value(std::move(reply)); });
    while (proxy.fired() == 0 && answer.wait_for(1ms) != std::future_status::ready) {
    }
    const bool struck = proxy.fired() > 0;
    if (silence.of == Silence::Of::all) proxy.hush_all();
    const Duration start = clock_.elapsed();
    store->begin_shutdown();
    store.reset();
    EXPECT_LT(clock_.elapsed() - start, 10s);
    if (answer.wait_for(0s) != std::future_status::ready) throw std::runtime_error("it was not answered");
    proxy.cut_all();
    holder.reset();
    const Told told = told_by(answer.get());
    return {struck, told, std::get<Settled>(Verbs(*other_).settle(request)).changed};
  }

  // All at once: each takes the seconds that silence does.
  std::vector<Ending> play_all(const std::vector<Silence>& silences) {
    const std::size_t first = std::exchange(keys_, keys_ + silences.size());
    const auto key_of = [first](std::size_t i) { return "k" + std::to_string(first + i); };
    std::vector<std::future<Ending>> played;
    for (std::size_t i = 0; i < silences.size(); ++i)
      played.push_back(std::async(std::launch::async, [&, i] { return play(silences[i], key_of(i)); }));
    std::vector<Ending> endings;
    PgClient hand(url());
    for (std::size_t i = 0; i < silences.size(); ++i) {
      const Silence& silence = silences[i];
      SCOPED_TRACE("place " + std::to_string(static_cast<int>(silence.at)) + " number " +
                   std::to_string(silence.after) + (silence.of == Silence::Of::all ? ", all" : ", one") +
                   (silence.is_held ? ", held" : ""));
      const Ending& ending = endings.emplace_back(played[i].get());
      if (ending.told != Told::unknown)
        EXPECT_NE(ending.told == Told::changed, ending.changed_after) << "who made the one settlement was told so";
      const std::string name = "'" + key_of(i) + "'";
      EXPECT_EQ(hand.ask_one("SELECT count(*) FROM latchkey.runs WHERE function = 'next' AND input = " + name), "2")
          << "the follow-ups of one settlement";
      EXPECT_EQ(hand.ask_one("SELECT convert_from(s.result, 'UTF8') FROM latchkey.all_states s JOIN latchkey.runs r "
                             "USING (seq) WHERE r.key = " +
                             name),
                "r");
    }
    return endings;
  }

  std::size_t keys_ = 0;
  std::unique_ptr<Store> other_ = open(url());
};

// To the end of the settlement and beyond it.
TEST_F(PostgresCloseWalk, OneSettlementWhereverItFallsSilent) {
  constexpr std::uint64_t kBeyond = 12;
  std::map<Told, int> told;
  for (const auto of : {Silence::Of::one_connection, Silence::Of::all}) {
    std::vector<Silence> silences{{FaultAt::commit_asked, 0, of}, {FaultAt::commit_answered, 0, of}};
    for (std::uint64_t n = 0; n < kBeyond; ++n)
      for (const FaultAt at : {FaultAt::trip_asked, FaultAt::trip_answered}) silences.push_back({at, n, of});
    const auto endings = play_all(silences);
    EXPECT_FALSE(endings.at(1).changed_after) << "it was kept, whatever was told";
    EXPECT_FALSE(endings.back().struck) << "there are round trips that were not cut";
    for (const Ending& ending : endings) told[ending.told] += 1;
  }
  for (const Told each : {Told::nothing_changed, Told::unknown, Told::changed}) EXPECT_GT(told[each], 0);
}

// It asks again and again: silent amid that.
TEST_F(PostgresCloseWalk, NoneBesideWhoHoldsTheRun) {
  std::vector<Silence> silences;
  for (const auto of : {Silence::Of::one_connection, Silence::Of::all})
    for (std::uint64_t n = 0; n < 20; n += 2)
      silences.push_back({n % 4 ? FaultAt::trip_asked : FaultAt::trip_answered, n, of, true});
  for (const Ending& ending : play_all(silences)) {
    EXPECT_TRUE(ending.struck);
    EXPECT_EQ(ending.told, Told::nothing_changed) << "it never had the run";
    EXPECT_TRUE(ending.changed_after);
  }
}

// What may have been counted is not given back to be counted again; what was certainly not is.
TEST_F(PostgresCloseWalk, DuplicatesAreNotCountedTwice) {
  for (const FaultAt at : {FaultAt::commit_asked, FaultAt::commit_answered, FaultAt::trip_asked}) {
    SCOPED_TRACE(static_cast<int>(at));
    FaultProxy proxy(PgServer::instance().port());
    auto store = open(proxy.url(database()), {.writers = 1, .readers = 1, .reply_max = 10min, .close_max = 400ms});
    const Won own = std::get<Won>(Verbs(*other_).claim(a_claim("k" + std::to_string(static_cast<int>(at)))));
    const Instant now = other_->now();
    const std::vector<DuplicateNote> notes{{own.run.id(), {.counts = {{"REPLAYED", 5, now, now}}, .latest = {}}}};
    proxy.arm(ConnectionFault{at, FaultHow::swallow});
    auto promise = std::make_shared<std::promise<Result<std::monostate>>>();
    auto answer = promise->get_future();
    store->note_duplicates(notes, [promise](Result<std::monostate> reply) { promise->set_value(std::move(reply)); });
    while (proxy.fired() == 0 && answer.wait_for(1ms) != std::future_status::ready) {
    }
    proxy.hush_all();
    store.reset();
    proxy.cut_all();
    // As the engine does.
    const bool is_given_back = !answer.get();
    if (is_given_back) Verbs(*other_).note(notes.front());
    const auto seen = other_->find_duplicates(own.run.id()).value();
    EXPECT_EQ(is_given_back, at == FaultAt::trip_asked);
    if (at == FaultAt::commit_asked) {
      EXPECT_FALSE(seen) << "the test did not test";
    } else {
      ASSERT_TRUE(seen);
      EXPECT_EQ(seen->counts.at(0).count, 5u);
    }
  }
}

}  // namespace
}  // namespace latchkey
