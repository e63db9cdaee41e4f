// Another server than before, which has not all that the last one promised: who comes to it first makes fences and ids
// jump and ends the leases. Cut about every COMMIT of that and of what follows, alone and with another store that comes
// at the same time.
#include <gmock/gmock.h>

#include <future>
#include <set>

#include "support/postgres/pg_walk.hpp"

namespace latchkey {
namespace {

class PostgresPlaceWalk : public PgWalk {
 protected:
  static std::future<ClaimReply> ask(Store& store, const std::string& key) {
    return std::async(std::launch::async, [&store, key] { return Verbs(store).claim(a_claim(key)); });
  }
  static std::vector<Taken> take(Store& store) {
    return Verbs(store).take({.functions = {"f"}, .limit = 5, .session = id_of(5), .lease = 1h});
  }
  // By what another server is known: a standby that was promoted has another timeline, a backup that was restored into
  // a new cluster another system identifier.
  static constexpr const char* kDiffers[] = {"timeline = '00000000'", "system = '1'"};
  // The fences and ids that were drawn last are not known here any more.
  void go_elsewhere(const std::string& differs) {
    hand_.execute("UPDATE latchkey.place SET " + differs +
                  "; SELECT setval('latchkey.fences', 1, false); SELECT setval('latchkey.counters', 1, false)");
    proxy_.cut_all();
    calm_.cut_all();
  }
  void tell(std::uint64_t n, Company company, const std::string& differs);

  FaultProxy calm_{PgServer::instance().port()};
};

INSTANTIATE_TEST_SUITE_P(Of, PostgresPlaceWalk, testing::ValuesIn(PgWalk::kinds()), PgWalk::name);

void PostgresPlaceWalk::tell(std::uint64_t n, Company company, const std::string& differs) {
  ManualClock clock{kNoon};
  empty();
  const auto one = open_hasty(proxy_.url(database()), {.writers = 1, .clock = &clock});
  const auto two = open_hasty(calm_.url(database()), {.writers = 1, .clock = &clock});
  ClaimRequest held = a_claim("held");
  held.lease = 1h;
  const Won before = std::get<Won>(Verbs(*one).claim(held));
  ASSERT_TRUE(std::holds_alternative<Won>(Verbs(*two).claim(a_claim("of two"))));
  Verbs(*one).enqueue_all({3, EnqueueRequest{.function = "f"}});
  const auto taken = take(*one);
  ASSERT_EQ(taken.size(), 3u);
  Fence last = before.fence;
  for (const Taken& each : taken) last = std::max(last, each.fence);

  go_elsewhere(differs);
  arm(n);
  std::future<ClaimReply> beside;
  if (company == Company::another) beside = ask(*two, "new of two");
  std::set<Fence> fences;
  const auto win = [&](const ClaimReply& reply) {
    const auto* won = std::get_if<Won>(&reply);
    ASSERT_TRUE(won) << "a lease by another's word is none, and a new key is free";
    EXPECT_GT(won->fence, last) << "drawn before";
    EXPECT_TRUE(fences.insert(won->fence).second) << "drawn twice";
  };
  win(Verbs(*one).claim(held));
  if (beside.valid()) win(beside.get());
  EXPECT_EQ(code_of(Verbs(*one).settle({{}, before.run.id(), before.fence, Complete{"r", {}}})), Code::LEASE_LOST);
  EXPECT_EQ(Verbs(*one).sweep().changed, 3u) << "the jobs' leases are over too";
  const auto again = take(*one);
  EXPECT_EQ(again.size(), 3u);
  for (const Taken& each : again) {
    EXPECT_EQ(each.run.attempt, 2u);
    EXPECT_GT(each.fence, last);
    EXPECT_TRUE(fences.insert(each.fence).second);
  }
  win(Verbs(*two).claim(a_claim("the last")));
  // A jump that was not committed stays: sequences do not go back.
  EXPECT_THAT(hand_.ask_one("SELECT last_value / 100000000000 FROM latchkey.fences"), testing::AnyOf("1", "2"));
  EXPECT_EQ(hand_.ask_one("SELECT system || ' ' || timeline FROM latchkey.place"),
            hand_.ask_one("SELECT system_identifier || ' ' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) FROM "
                          "pg_control_system()"));
  EXPECT_EQ(hand_.ask_one("SELECT count(*) FROM latchkey.runs"), company == Company::another ? "7" : "6");
}

TEST_P(PostgresPlaceWalk, FencesJumpAndLeasesEnd) {
  // At each COMMIT one of the two differs; the other one where there is company.
  std::uint64_t first = 0;
  for (const Company company : {Company::none, Company::another}) {
    EXPECT_GT(walk([&](std::uint64_t n) { tell(n, company, kDiffers[(n + first) % 2]); }, 1), 3u);
    first += 1;
  }
}

}  // namespace
}  // namespace latchkey
