// The server identity changes, and the new server may lack the last commits: the first store that connects advances the
// sequences of fences and ids, and expires all leases. The fault walk cuts every COMMIT of that and of the next calls,
// with one store and with two at the same time.
#include <gmock/gmock.h>

#include <future>
#include <set>

#include "support/postgres/pg_walk.hpp"

namespace latchkey {
namespace {

class ServerIdentityWalk : public PgWalk {
 protected:
  static std::future<ClaimReply> ask(Store& store, const std::string& key) {
    return std::async(std::launch::async, [&store, key] { return Verbs(store).claim(a_claim(key)); });
  }
  static std::vector<Taken> take(Store& store) {
    return Verbs(store).take({.functions = {"f"}, .limit = 5, .session = id_of(5), .lease = 1h});
  }
  // The differences of a new server: a promoted standby has another timeline, and a backup that was restored into a new
  // cluster has another system identifier.
  static constexpr const char* kDiffers[] = {"timeline = '00000000'", "system = '1'"};
  // Simulates a new server: resets the sequences of fences and ids, and cuts all connections.
  void change_server(const std::string& differs) {
    admin_.execute("UPDATE latchkey.place SET " + differs +
                   "; SELECT setval('latchkey.fences', 1, false); SELECT setval('latchkey.counters', 1, false)");
    proxy_.cut_all();
    second_proxy_.cut_all();
  }
  void play(std::uint64_t n, OtherStore other, const std::string& differs);

  FaultProxy second_proxy_{PgServer::instance().port()};
};

INSTANTIATE_TEST_SUITE_P(Of, ServerIdentityWalk, testing::ValuesIn(PgWalk::kinds()), PgWalk::name);

void ServerIdentityWalk::play(std::uint64_t n, OtherStore other, const std::string& differs) {
  ManualClock clock{kNoon};
  empty();
  const auto one = open_fast(proxy_.url(database()), {.writers = 1, .clock = &clock});
  const auto two = open_fast(second_proxy_.url(database()), {.writers = 1, .clock = &clock});
  ClaimRequest leased = a_claim("leased");
  leased.lease = 1h;
  const Won before = std::get<Won>(Verbs(*one).claim(leased));
  ASSERT_TRUE(std::holds_alternative<Won>(Verbs(*two).claim(a_claim("of two"))));
  Verbs(*one).enqueue_all({3, EnqueueRequest{.function = "f"}});
  const auto taken = take(*one);
  ASSERT_EQ(taken.size(), 3u);
  Fence last = before.fence;
  for (const Taken& each : taken) last = std::max(last, each.fence);

  change_server(differs);
  arm(n);
  std::future<ClaimReply> beside;
  if (other == OtherStore::present) beside = ask(*two, "new of two");
  std::set<Fence> fences;
  const auto win = [&](const ClaimReply& reply) {
    const auto* won = std::get_if<Won>(&reply);
    ASSERT_TRUE(won) << "a lease of the old server is still valid";
    EXPECT_GT(won->fence, last) << "the old server has drawn this fence";
    EXPECT_TRUE(fences.insert(won->fence).second) << "the fence was drawn twice";
  };
  win(Verbs(*one).claim(leased));
  if (beside.valid()) win(beside.get());
  EXPECT_EQ(code_of(Verbs(*one).settle({{}, before.run.id(), before.fence, Complete{"r", {}}})), Code::LEASE_LOST);
  EXPECT_EQ(Verbs(*one).sweep().changed, 3u) << "the jobs' leases did not expire";
  const auto again = take(*one);
  EXPECT_EQ(again.size(), 3u);
  for (const Taken& each : again) {
    EXPECT_EQ(each.run.attempt, 2u);
    EXPECT_GT(each.fence, last);
    EXPECT_TRUE(fences.insert(each.fence).second);
  }
  win(Verbs(*two).claim(a_claim("the last")));
  // A rollback does not reset sequences, so the sequence may have advanced twice.
  EXPECT_THAT(admin_.ask_one("SELECT last_value / 100000000000 FROM latchkey.fences"), testing::AnyOf("1", "2"));
  EXPECT_EQ(
      admin_.ask_one("SELECT system || ' ' || timeline FROM latchkey.place"),
      admin_.ask_one("SELECT system_identifier || ' ' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) FROM "
                     "pg_control_system()"));
  EXPECT_EQ(admin_.ask_one("SELECT count(*) FROM latchkey.runs"), other == OtherStore::present ? "7" : "6");
}

TEST_P(ServerIdentityWalk, FencesJumpAndLeasesExpire) {
  // The walk alternates the two differences, in the opposite order with two stores.
  std::uint64_t first = 0;
  for (const OtherStore other : {OtherStore::none, OtherStore::present}) {
    EXPECT_GT(walk([&](std::uint64_t n) { play(n, other, kDiffers[(n + first) % 2]); }, 1), 3u);
    first += 1;
  }
}

}  // namespace
}  // namespace latchkey
