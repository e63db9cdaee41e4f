// Clocks that are set while stores are open. The store uses the database server's clock, and the store's time never
// goes back: no lease gets longer or shorter, and no job is due earlier or later. A store never reads its host's wall
// clock.
#include "conformance/store_test.hpp"
#include "migrate/open_postgres.hpp"
#include "support/postgres/pg_client.hpp"
#include "support/postgres/pg_cluster.hpp"
#include "support/postgres/server_clock.hpp"

namespace latchkey {
namespace {

// The machine's clock with a wall clock that a test sets.
class SetClock final : public Clock {
 public:
  Instant now() override { return real_.now() + Duration{offset_ms_.load()}; }
  Duration elapsed() override { return real_.elapsed(); }
  Task<void> wait(Duration span) override { return real_.wait(span); }
  void set(Duration offset) { offset_ms_ = offset.count(); }

 private:
  SystemClock real_;
  std::atomic<std::int64_t> offset_ms_{0};
};

class PostgresClock : public ::testing::Test {
 protected:
  using Run = latchkey::Run;

  std::unique_ptr<PostgresStore> open() {
    auto opened = migrate::open_postgres({.url = server_.url()}, host_, random_);
    if (!opened) throw std::runtime_error(to_string(opened.error()));
    return std::move(*opened);
  }
  Instant server_now() {
    return from_ms(std::stoll(admin_.ask_one("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint")));
  }
  void set_server(Duration offset) {
    const Instant before = server_now();
    time_.set(offset);
    ASSERT_LT(server_now(), before + offset + 1min) << "the server's clock did not change";
  }
  static ClaimRequest for_an_hour(const std::string& key) {
    ClaimRequest request = a_claim(key);
    request.lease = 1h;
    return request;
  }
  static std::vector<Taken> take(Store& store, const std::string& function, Duration lease = 1h) {
    return Verbs(store).take({.functions = {function}, .limit = 5, .session = id_of(5), .lease = lease});
  }
  // Polls the condition for 10 s: longer than the clocks of two hosts may differ, also on a busy machine.
  bool soon(auto condition) {
    for (const Duration limit = host_.elapsed() + 10s; host_.elapsed() < limit;)
      if (condition()) return true;
    return false;
  }

  ServerClock time_;
  SetClock host_;
  SystemRandom random_;
  PgCluster server_;
  std::unique_ptr<PostgresStore> store_ = open();
  PgClient admin_{server_.url()};
};

TEST_F(PostgresClock, StepBackMovesNoDeadline) {
  const auto other = open();
  const Won leased = std::get<Won>(Verbs(*store_).claim(for_an_hour("leased")));
  const Won done = std::get<Won>(Verbs(*store_).claim(a_claim("done")));
  Verbs(*store_).settle({{}, done.run.id(), done.fence, Complete{"r", {}}});
  Verbs(*store_).enqueue({.function = "later", .delay = 30min});
  Verbs(*store_).enqueue({.function = "taken"});
  const Taken taken = take(*store_, "taken").at(0);
  const Instant before = store_->now();
  set_server(-1h);
  const auto opened_after = open();
  admin_.execute("SET app.current_tenant = 'default'");

  Fence last = std::max({leased.fence, done.fence, taken.fence});
  int number = 0;
  const std::vector<Store*> all{store_.get(), other.get(), opened_after.get()};
  for (Store* one : all) {
    const std::string name = std::to_string(++number);
    EXPECT_TRUE(std::holds_alternative<Busy>(Verbs(*one).claim(for_an_hour("leased")))) << name;
    EXPECT_TRUE(std::holds_alternative<Replay>(Verbs(*one).claim(a_claim("done")))) << name;
    EXPECT_GE(one->now(), before) << name;
    EXPECT_LT(one->now(), before + 1min) << name;
    EXPECT_TRUE(take(*one, "later").empty()) << name << ": taken half an hour early";
    EXPECT_EQ(Verbs(*one).sweep().changed, 0u) << name;
    const Won fresh = std::get<Won>(Verbs(*one).claim(for_an_hour("fresh" + name)));
    EXPECT_GT(fresh.fence, last) << name;
    EXPECT_GE(fresh.lease_until, before + 1h) << name;
    last = fresh.fence;
    // A job that one store enqueues is due on every store at once, before the server's clock reaches that time again.
    for (Store* another : all) {
      Verbs(*one).enqueue({.function = "now"});
      EXPECT_TRUE(soon([&] { return take(*another, "now").size() == 1; })) << name;
    }
    admin_.execute("SELECT latchkey.enqueue('now')");
    EXPECT_TRUE(soon([&] { return take(*one, "now").size() == 1; })) << name << ": enqueued by a user's transaction";
  }
  EXPECT_EQ(admin_.ask_one("SELECT status FROM latchkey.begin_run('f', 'leased')"), "busy");

  const auto extended = std::get<Extended>(Verbs(*opened_after).extend({{}, leased.run.id(), leased.fence, 2h}));
  EXPECT_GT(extended.lease_until, leased.lease_until);
  EXPECT_TRUE(std::get<Settled>(Verbs(*other).settle({{}, leased.run.id(), leased.fence, Complete{"r", {}}})).changed);
  EXPECT_TRUE(std::get<Settled>(Verbs(*other).settle({{}, taken.run.id(), taken.fence, Complete{"r", {}}})).changed);
}

TEST_F(PostgresClock, LeasesExpireAfterStepBack) {
  ClaimRequest request = a_claim("k");
  request.lease = 1s;
  const Won first = std::get<Won>(Verbs(*store_).claim(request));
  Verbs(*store_).enqueue({.function = "job"});
  ASSERT_EQ(take(*store_, "job", 1s).size(), 1u);
  set_server(-1h);
  const auto other = open();
  std::optional<Won> second;
  EXPECT_TRUE(soon([&] {
    const ClaimReply reply = Verbs(*other).claim(request);
    if (const auto* won = std::get_if<Won>(&reply)) second = *won;
    return second.has_value();
  }));
  ASSERT_TRUE(second);
  EXPECT_GT(second->fence, first.fence);
  EXPECT_EQ(code_of(Verbs(*store_).settle({{}, first.run.id(), first.fence, Complete{}})), Code::LEASE_LOST);
  EXPECT_TRUE(soon([&] {
    Verbs(*store_).sweep();
    const auto again = take(*other, "job");
    return again.size() == 1 && again[0].run.attempt == 2;
  }));
}

// Only one of two stores reads the time while it is ten minutes ahead. It must not expire the other store's leases
// early.
TEST_F(PostgresClock, StoresShareTheHighestTime) {
  const auto other = open();
  ASSERT_TRUE(std::holds_alternative<Won>(Verbs(*other).claim(a_claim("before"))));
  set_server(10min);
  ASSERT_TRUE(std::holds_alternative<Won>(Verbs(*store_).claim(for_an_hour("ahead"))));
  set_server(Duration{0});
  ClaimRequest request = a_claim("leased");
  request.lease = 1min;
  const Won leased = std::get<Won>(Verbs(*other).claim(request));
  Verbs(*store_).sweep();
  EXPECT_TRUE(std::holds_alternative<Busy>(Verbs(*store_).claim(request))) << "the store expired a valid lease";
  EXPECT_TRUE(std::get<Settled>(Verbs(*other).settle({{}, leased.run.id(), leased.fence, Complete{"r", {}}})).changed);
  EXPECT_LT(std::chrono::abs(store_->now() - other->now()), 10s);
  const auto later = open();
  EXPECT_LT(std::chrono::abs(store_->now() - later->now()), 10s);
  // An idle store still writes its time to the database.
  const auto mark = [&] { return std::stoll(admin_.ask_one("SELECT last_value FROM latchkey.clock")); };
  const auto marked = mark();
  EXPECT_TRUE(soon([&] { return mark() > marked; }));
}

TEST_F(PostgresClock, HostWallClockIsNotUsed) {
  const Won leased = std::get<Won>(Verbs(*store_).claim(for_an_hour("leased")));
  Verbs(*store_).enqueue({.function = "later", .delay = 30min});
  for (const Duration jump : {Duration{2h}, Duration{-2h}}) {
    host_.set(jump);
    const auto opened_after = open();
    for (Store* one : std::initializer_list<Store*>{store_.get(), opened_after.get()}) {
      EXPECT_TRUE(std::holds_alternative<Busy>(Verbs(*one).claim(for_an_hour("leased"))));
      EXPECT_TRUE(take(*one, "later").empty());
      EXPECT_EQ(Verbs(*one).sweep().changed, 0u);
      Verbs(*one).enqueue({.function = "now"});
      EXPECT_TRUE(soon([&] { return take(*one, "now").size() == 1; }));
      EXPECT_LT(std::chrono::abs(one->now() - server_now()), 1min);
    }
  }
  EXPECT_TRUE(std::get<Settled>(Verbs(*store_).settle({{}, leased.run.id(), leased.fence, Complete{"r", {}}})).changed);
}

}  // namespace
}  // namespace latchkey
