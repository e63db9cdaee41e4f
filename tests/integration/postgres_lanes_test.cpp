// Few requests wait for lanes that are soon back (UnderWay). They must not wait for those that are not.
#include "conformance/store_test.hpp"
#include "integration/pg_stores.hpp"
#include "integration/stopped_clock.hpp"
#include "support/comes_true.hpp"
#include "support/fault_proxy.hpp"

namespace latchkey {
namespace {

class PostgresLanes : public PostgresStores {
 protected:
  ~PostgresLanes() override { proxy_.cut_all(); }

  std::future<Result<ClaimReply>> claim(const std::string& key) {
    auto told = std::make_shared<std::promise<Result<ClaimReply>>>();
    store_->claim(a_claim(key), [told](Result<ClaimReply> reply) { told->set_value(std::move(reply)); });
    return told->get_future();
  }
  static bool has_won(std::future<Result<ClaimReply>>& answer) {
    const auto reply = answer.get();
    return reply && std::holds_alternative<Won>(*reply);
  }

  static constexpr auto kSilence = 5s;
  StoppedClock time_;  // as it seems to the store, two that have set out have done so just now
  FaultProxy proxy_{PgServer::instance().port()};
  std::unique_ptr<Store> store_ = open(proxy_.url(database()), {.lanes = 4, .reply_max = kSilence}, time_);
};

TEST_F(PostgresLanes, AFewWaitForTwoThatAreSoonBackAndNotWhenTheyTakeLong) {
  std::vector<std::future<Result<ClaimReply>>> silent;
  for (const char* key : {"a", "b"}) {
    proxy_.arm({FaultAt::commit_asked, FaultHow::swallow});
    silent.push_back(claim(key));
    ASSERT_TRUE(comes_true([&] { return proxy_.fired() == silent.size(); })) << "the test did not test";
  }
  auto few = claim("c");
  EXPECT_EQ(few.wait_for(100ms), std::future_status::timeout) << "it did not wait for them";
  auto many = std::make_shared<std::promise<void>>();
  auto much = many->get_future();
  store_->enqueue({100, EnqueueRequest{.function = "f"}},
                  [many](Result<std::vector<EnqueueReply>>) { many->set_value(); });
  EXPECT_EQ(much.wait_for(kSilence / 2), std::future_status::ready) << "many waited, too";
  EXPECT_EQ(few.wait_for(kSilence / 2), std::future_status::ready) << "and did not take it along";
  EXPECT_TRUE(has_won(few));

  // Nothing else comes that would wake a lane.
  auto alone = claim("d");
  EXPECT_EQ(alone.wait_for(100ms), std::future_status::timeout) << "it did not wait for them";
  time_.let_go();
  ASSERT_EQ(alone.wait_for(kSilence / 2), std::future_status::ready) << "it waits for the silent ones";
  EXPECT_TRUE(has_won(alone));
  for (auto& one : silent) EXPECT_TRUE(has_won(one));
}

}  // namespace
}  // namespace latchkey
