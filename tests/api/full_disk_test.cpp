// A full disk as clients see it: claims are rejected, reads continue, and claims succeed again once there is room.
#include "api/service_fixture.hpp"
#include "support/fault_disk.hpp"

namespace latchkey {
namespace {

class DiskTest : public ServiceTest {
 protected:
  void SetUp() override {
    settings_.sqlite.vfs = disk_.vfs();
    start();
  }
  void TearDown() override { service_.reset(); }

  void set_full(bool full) {
    const std::lock_guard lock(disk_.mutex());
    disk_.set_full(full);
  }
  // Claims new keys until a claim fails.
  Heard claim_until_refused() {
    for (int i = 0; i < 10'000; ++i)
      if (Heard heard = admin().claim("n" + std::to_string(i)); heard.status != 201) return heard;
    return {};
  }

  FaultDisk disk_{1};
};

TEST_F(DiskTest, FullDiskRejectsClaimsThenRecovers) {
  const Heard won = admin().claim("done");
  ASSERT_EQ(admin().settle(won, "complete", R"(,"result":[1])").status, 200);
  EXPECT_EQ(admin().get("/readyz").status, 200);
  set_full(true);
  const Heard refused = claim_until_refused();
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.at("/code"), "STORE_FULL");
  EXPECT_EQ(refused.at("/retryable"), "true");
  EXPECT_TRUE(refused.header("retry-after"));
  EXPECT_EQ(admin().get("/readyz").at("/code"), "STORE_FULL");
  EXPECT_EQ(admin().get("/healthz").status, 200);
  EXPECT_EQ(admin().claim("done").at("/result"), "[1]") << "replays still succeed";
  EXPECT_EQ(admin().get("/v1/runs/" + won.at("/run/id")).status, 200) << "reads still succeed";
  EXPECT_EQ(admin().get("/v1/runs?limit=1").status, 200);
  EXPECT_THAT(admin().get("/metrics").body, ::testing::Not(::testing::HasSubstr("latchkey_store_errors_total 0\n")));

  set_full(false);
  while (admin().get("/readyz").status != 200) {
  }
  EXPECT_EQ(admin().claim("after").status, 201);
}

// Readiness probes may come every second from many hosts, so a probe must not write a byte or sync a file.
TEST_F(DiskTest, ReadinessProbeTouchesNoDisk) {
  ASSERT_EQ(admin().claim("k").status, 201);
  const auto before = disk_.operations();
  for (int i = 0; i < 100; ++i) EXPECT_EQ(admin().get("/readyz").status, 200);
  EXPECT_EQ(disk_.operations(), before);
  ASSERT_EQ(admin().claim("other").status, 201);
  EXPECT_GT(disk_.operations(), before) << "a claim does write";
}

}  // namespace
}  // namespace latchkey
