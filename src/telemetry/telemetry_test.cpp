#include "telemetry/telemetry.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace latchkey {
namespace {

using ::testing::HasSubstr;

TEST(Telemetry, CountsByLabel) {
  Telemetry telemetry;
  telemetry.count(ClaimReply{Mismatch{}});
  telemetry.count(ClaimReply{Busy{.run = {}, .code = Code::ALREADY_QUEUED}});
  telemetry.count(ClaimReply{Busy{.run = {}, .code = Code::MOVE_REFUSED}});
  telemetry.count(ClaimReply{Busy{}});
  telemetry.count(ClaimReply{Busy{}});
  telemetry.count_settled(Ending{Release{}}.index());
  telemetry.count_refused_settle(Code::LEASE_LOST);
  telemetry.count_refused_settle(Code::ALREADY_SETTLED);
  telemetry.count_response(201);
  telemetry.count_response(999);
  const std::string text = telemetry.expose({.replays_from_memory = 7, .waiting = 2});
  EXPECT_THAT(text, HasSubstr("latchkey_claims_total{answer=\"key_reused\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("latchkey_claims_total{answer=\"already_queued\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("latchkey_claims_total{answer=\"move_refused\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("latchkey_claims_total{answer=\"already_running\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("latchkey_claims_total{answer=\"won\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("latchkey_settles_total{kind=\"release\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("latchkey_stale_settles_total 1\n"));
  EXPECT_THAT(text, HasSubstr("latchkey_http_responses_total{class=\"2xx\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("latchkey_http_responses_total{class=\"other\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("latchkey_replays_from_memory 7\n"));
  EXPECT_THAT(text, HasSubstr("latchkey_waiting_requests 2\n"));
}

TEST(Telemetry, ExposesOpenRunsDoubtAndDeadLetters) {
  Telemetry telemetry;
  const StoreStats stats{.queued = 5, .running = 4, .in_doubt = 3, .doubt_since = from_ms(1'000), .unacknowledged_dead_letters = 2};
  const auto expect_gauges = [](const std::string& text) {
    EXPECT_THAT(text, HasSubstr("latchkey_open_runs{state=\"queued\"} 5\n"));
    EXPECT_THAT(text, HasSubstr("latchkey_open_runs{state=\"running\"} 4\n"));
    EXPECT_THAT(text, HasSubstr("latchkey_open_runs{state=\"in_doubt\"} 3\n"));
    EXPECT_THAT(text, HasSubstr("latchkey_oldest_doubt_seconds 2.5\n"));
    EXPECT_THAT(text, HasSubstr("latchkey_unacknowledged_dead_letters 2\n"));
  };
  expect_gauges(telemetry.expose({.stats = stats, .now = from_ms(3'500)}));
  expect_gauges(telemetry.expose({.now = from_ms(9'000)}));
  EXPECT_THAT(telemetry.expose({.stats = StoreStats{}, .now = from_ms(9'000)}),
              HasSubstr("latchkey_oldest_doubt_seconds 0\n"));
}

}  // namespace
}  // namespace latchkey
