// The API's replies, over real sockets and a real store.

#include <latch>
#include <set>
#include <thread>

#include "api/service_fixture.hpp"

namespace latchkey {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class ApiTest : public ServiceTest {};

// covers: B2
TEST_F(ApiTest, ClaimCompleteReplay) {
  const Heard won = admin().claim("k", R"(,"input":{"b":1,"a":[2.50,"é"]},"caller":"cron")");
  ASSERT_EQ(won.status, 201) << won.body;
  EXPECT_EQ(won.header("location"), "/v1/runs/" + won.at("/run/id"));
  EXPECT_EQ(won.at("/run/status"), "running");
  EXPECT_EQ(won.at("/run/tenant"), "default");
  EXPECT_EQ(won.at("/run/origin"), "claimed");
  EXPECT_EQ(won.at("/run/attempt"), "1");
  EXPECT_EQ(won.at("/run/attempts_max"), "4");
  EXPECT_EQ(won.at("/run/window_ms"), "86400000");
  EXPECT_EQ(won.at("/run/effect_key"), won.at("/run/id"));
  EXPECT_EQ(won.at("/run/caller"), "cron");
  EXPECT_EQ(won.at("/run/fence"), won.at("/fence"));
  EXPECT_EQ(won.at("/run/lease_until"), won.at("/lease_until"));

  const Heard beat = admin().settle(won, "heartbeat", R"(,"lease_ms":120000)");
  EXPECT_EQ(beat.status, 200);
  EXPECT_GT(beat.at("/lease_until"), won.at("/lease_until"));
  EXPECT_FALSE(beat.has("/cancel"));

  const std::string result = "{ \"z\" : [1.0,\t2e1, 9007199254740993],\n \"a\":\"\\u00e9\xc3\xa9\" }";
  const Heard done = admin().settle(won, "complete", ",\"result\":  " + result + "  ");
  EXPECT_EQ(done.status, 200);
  EXPECT_EQ(done.at("/status"), "completed");
  EXPECT_THAT(done.body, HasSubstr("\"result\":" + result));
  EXPECT_EQ(admin().settle(won, "complete", R"(,"result":"other")").body, done.body)
      << "settling twice changes nothing";

  // An equivalent request: members in another order, numbers in another notation.
  const Heard replay = admin().claim("k", R"(,"input":{"a":[2.5,"\u00e9"],"b":1.0})");
  EXPECT_EQ(replay.status, 200);
  EXPECT_EQ(replay.header("idempotent-replayed"), "true");
  EXPECT_EQ(replay.at("/replayed"), "true");
  EXPECT_EQ(replay.at("/run/id"), won.at("/run/id"));
  EXPECT_THAT(replay.body, HasSubstr("\"result\":" + result + "}")) << "byte-equal";
  EXPECT_TRUE(replay.has("/run/expires_at"));

  const Heard other = admin().claim("k", R"(,"input":{"b":2})");
  EXPECT_EQ(other.status, 422);
  EXPECT_EQ(other.at("/code"), "KEY_REUSED");
  EXPECT_EQ(other.at("/existing_run_id"), won.at("/run/id"));
  EXPECT_EQ(admin().claim("k", R"(,"fingerprint":null,"input":{"b":2})").status, 200)
      << "a null fingerprint is not compared";

  const Heard found = admin().get("/v1/runs/" + won.at("/run/id"));
  EXPECT_EQ(found.status, 200);
  EXPECT_THAT(found.body, HasSubstr(R"("input":{"b":1,"a":[2.50,"é"]},"result":)" + result));
}

TEST_F(ApiTest, ResultsMayBeAbsentOrNull) {
  admin().settle(admin().claim("absent"), "complete");
  EXPECT_EQ(admin().claim("absent").at("/result"), "null");
  admin().settle(admin().claim("null"), "complete", R"(,"result":null)");
  EXPECT_EQ(admin().claim("null").at("/result"), "null");
}

TEST_F(ApiTest, SettlesOfAnotherOwnerAreRejected) {
  const Heard won = admin().claim("k");
  const std::string path = "/v1/runs/" + won.at("/run/id");
  for (const char* verb : {"/heartbeat", "/complete", "/release"}) {
    const Heard heard = admin().post(path + verb, R"({"fence":9007199254740991})");
    EXPECT_EQ(heard.status, 409) << verb;
    EXPECT_EQ(heard.at("/code"), "LEASE_LOST") << verb;
    EXPECT_EQ(heard.at("/retryable"), "false");
  }
  EXPECT_EQ(admin().settle(won, "complete", R"(,"result":1)").status, 200);
  const Heard late = admin().settle(won, "fail", R"(,"error":{"message":"x"})");
  EXPECT_EQ(late.status, 409);
  EXPECT_EQ(late.at("/code"), "ALREADY_SETTLED");
  EXPECT_THAT(admin().get("/metrics").body, HasSubstr("latchkey_stale_settles_total 2\n"));
}

TEST_F(ApiTest, FailuresAreRetriedThenDeadLettered) {
  const char* policy = R"(,"retry":{"retries":1,"first_ms":0,"factor":1,"ceiling_ms":0,"jitter":"full"})";
  const Heard first = admin().claim("k", policy);
  const Heard failed = admin().settle(first, "fail", R"(,"error":{"message":"no \"luck\"","code":"E1"})");
  EXPECT_EQ(failed.status, 200);
  EXPECT_EQ(failed.at("/run/status"), "queued");
  EXPECT_TRUE(failed.has("/retry_at"));
  EXPECT_EQ(failed.at("/run/error/message"), "no \"luck\"");
  EXPECT_EQ(failed.at("/run/error/code"), "E1");
  const Heard second = admin().claim("k", policy);
  ASSERT_EQ(second.status, 201);
  EXPECT_EQ(second.at("/run/id"), first.at("/run/id"));
  EXPECT_EQ(second.at("/run/attempt"), "2");
  EXPECT_GT(std::stoull(second.at("/fence")), std::stoull(first.at("/fence")));
  EXPECT_EQ(admin().settle(first, "complete").at("/code"), "LEASE_LOST");
  const Heard over = admin().settle(second, "fail", R"(,"error":{"message":"again"})");
  EXPECT_EQ(over.at("/run/status"), "failed");
  EXPECT_EQ(over.at("/run/code"), "MAX_RETRIES_EXCEEDED");
  EXPECT_EQ(over.at("/run/effect"), "none");
  const std::string letter = over.at("/dead_letter_id");

  EXPECT_EQ(admin().get("/v1/dead-letters").at("/items/0/id"), letter);
  const Heard entry = admin().get("/v1/dead-letters/" + letter);
  EXPECT_EQ(entry.at("/count"), "1");
  EXPECT_EQ(entry.at("/members/0/run"), first.at("/run/id"));
  EXPECT_EQ(entry.at("/members/0/key"), "k");
  EXPECT_EQ(admin().post("/v1/dead-letters/" + letter + "/acknowledge").at("/acknowledged_by"), "admin.key");
  EXPECT_EQ(admin().post("/v1/dead-letters/" + letter + "/acknowledge").status, 200) << "acknowledging twice succeeds";
  EXPECT_EQ(admin().get("/v1/dead-letters").at("/items"), "[]");
  EXPECT_EQ(admin().get("/v1/dead-letters?acknowledged=true").at("/items/0/id"), letter);

  const Heard retried = admin().post("/v1/runs/" + first.at("/run/id") + "/retry", R"({"fresh_effect_key":true})");
  EXPECT_EQ(retried.status, 200);
  EXPECT_EQ(retried.at("/status"), "queued");
  EXPECT_EQ(retried.at("/generation"), "2");
  EXPECT_NE(retried.at("/effect_key"), retried.at("/id"));
}

TEST_F(ApiTest, ScheduleSetsEveryDelay) {
  const Heard won =
      admin().claim("k", R"(,"retry":{"schedule_ms":[60000,3600000],"jitter":"percent","jitter_percent":0})");
  EXPECT_EQ(won.at("/run/attempts_max"), "3");
  const Heard failed = admin().settle(won, "fail", R"(,"error":{"message":"no"})");
  const auto waits = *parse_rfc3339(failed.at("/retry_at")) - *parse_rfc3339(won.at("/run/started_at"));
  EXPECT_GE(waits, std::chrono::seconds{60});
  EXPECT_LT(waits, std::chrono::seconds{90});
}

TEST_F(ApiTest, PermanentErrorsAreNotRetried) {
  const Heard failed = admin().settle(admin().claim("k"), "fail", R"(,"error":{"message":"no","retryable":false})");
  EXPECT_EQ(failed.at("/run/code"), "EXECUTION_ERROR");
  EXPECT_TRUE(failed.has("/dead_letter_id"));
  EXPECT_FALSE(failed.has("/retry_at"));
}

TEST_F(ApiTest, ReleaseRefundsTheAttempt) {
  const Heard won = admin().claim("k", R"(,"retry":{"retries":0})");
  EXPECT_EQ(admin().settle(won, "release").at("/status"), "queued");
  const Heard again = admin().claim("k");
  EXPECT_EQ(again.status, 201);
  EXPECT_EQ(again.at("/run/attempt"), "2");
  EXPECT_EQ(again.at("/run/attempts_max"), "2");
}

TEST_F(ApiTest, ReleaseCancelsOwnRetryDelayOnly) {
  const Heard first = admin().claim("k");
  admin().settle(first, "fail", R"(,"error":{"message":"down","retry_after_ms":600000})");
  EXPECT_EQ(admin().claim("k").at("/code"), "NOT_DUE");
  EXPECT_EQ(admin().settle(first, "release").at("/status"), "queued");
  EXPECT_EQ(admin().settle(first, "release").status, 200) << "a caller whose reply was lost may repeat it";
  const Heard second = admin().claim("k");
  ASSERT_EQ(second.status, 201);
  EXPECT_EQ(second.at("/run/id"), first.at("/run/id"));
  EXPECT_EQ(second.at("/run/attempts_max"), "4") << "the failed attempt counts";
  EXPECT_EQ(admin().settle(first, "release").at("/code"), "LEASE_LOST");
  EXPECT_EQ(admin().settle(second, "complete").status, 200) << "the later owner still has its lease";
}

TEST_F(ApiTest, SnoozeDelaysTheNextAttempt) {
  const Heard won = admin().claim("k");
  EXPECT_EQ(admin().settle(won, "release", R"(,"snooze_ms":600000)").at("/status"), "queued");
  EXPECT_EQ(admin().claim("k").at("/code"), "NOT_DUE");
  EXPECT_THAT(admin().get("/metrics").body, HasSubstr("latchkey_settles_total{kind=\"snooze\"} 1\n"));
}

TEST_F(ApiTest, CancelOfRunningRunIsARequest) {
  const Heard won = admin().claim("k");
  const std::string path = "/v1/runs/" + won.at("/run/id");
  EXPECT_EQ(admin().post(path + "/cancel").at("/cancel_requested"), "true");
  EXPECT_EQ(admin().settle(won, "heartbeat").at("/cancel"), "true");
  EXPECT_EQ(admin().settle(won, "fail", R"(,"error":{"message":"stopped"})").at("/run/status"), "cancelled");
  EXPECT_EQ(admin().claim("k").status, 201) << "a cancelled key is free";
  const Heard done = admin().claim("other");
  admin().settle(done, "complete");
  const Heard refused = admin().post("/v1/runs/" + done.at("/run/id") + "/cancel");
  EXPECT_EQ(refused.status, 409);
  EXPECT_EQ(refused.at("/code"), "MOVE_REFUSED");
}

TEST_F(ApiTest, InDoubtRunIsResolvedByHand) {
  const auto doubt = [&](std::string_view key) {
    const Heard won = admin().claim(key, R"(,"on_doubt":"hold")");
    const Heard failed = admin().settle(won, "fail", R"(,"error":{"message":"timeout","outcome_unknown":true})");
    EXPECT_EQ(failed.at("/run/status"), "in_doubt");
    EXPECT_TRUE(failed.has("/run/since"));
    return "/v1/runs/" + won.at("/run/id") + "/resolve";
  };
  const Heard resolved = admin().post(doubt("a"), R"({"outcome":"completed","result":{"paid":true}})");
  EXPECT_EQ(resolved.at("/status"), "completed");
  EXPECT_EQ(admin().claim("a").at("/result/paid"), "true");
  const Heard failed = admin().post(doubt("b"), R"({"outcome":"failed","note":"the bank said no"})");
  EXPECT_EQ(failed.at("/status"), "failed");
  EXPECT_EQ(failed.at("/error/message"), "the bank said no");
  EXPECT_EQ(admin().post(doubt("c"), R"({"outcome":"rerun"})").at("/status"), "queued");
  EXPECT_EQ(admin().claim("c").status, 201);
  EXPECT_EQ(admin().post(doubt("d"), R"({"outcome":"maybe"})").status, 400);
  EXPECT_EQ(admin().post(doubt("e"), R"({"outcome":"failed","result":1})").status, 400);
  for (const char* outcome : {"completed", "rerun"})
    EXPECT_EQ(admin().post(doubt(outcome), R"({"outcome":")" + std::string(outcome) + R"(","note":"why"})").status, 400)
        << "only a failed run stores a note";
  const std::string metrics = admin().get("/metrics").body;
  EXPECT_THAT(metrics, HasSubstr("latchkey_open_runs{state=\"in_doubt\"} 4\n"));
  EXPECT_THAT(metrics, HasSubstr("latchkey_open_runs{state=\"running\"} 1\n"));
  EXPECT_THAT(metrics, HasSubstr("latchkey_unacknowledged_dead_letters 1\n"));
  EXPECT_THAT(metrics, HasSubstr("latchkey_oldest_doubt_seconds "));
}

TEST_F(ApiTest, RepeatAfterLostReplyGetsSameRun) {
  const std::vector<http::ClientHeader> call{{"Idempotency-Key", "order 17"}};
  const Heard won = admin().post("/v1/runs", R"({"function":"f","key":"k"})", call);
  const Heard same = admin().post("/v1/runs", R"({"function":"f","key":"k"})", call);
  EXPECT_EQ(won.status, 201);
  EXPECT_EQ(same.status, 201);
  EXPECT_EQ(same.body, won.body) << "the same run and fence";
  EXPECT_FALSE(won.header("idempotent-replayed"));
  EXPECT_EQ(same.header("idempotent-replayed"), "true") << "the reply is marked as a replay";
  EXPECT_EQ(admin().claim("k").status, 409) << "another caller does not get the fence";

  const Heard keyless = admin().post("/v1/runs", R"({"function":"f"})", call);
  EXPECT_EQ(keyless.at("/run/key"), "call:order 17");
  EXPECT_EQ(keyless.at("/run/guard"), "once");
  EXPECT_EQ(admin().post("/v1/runs", R"({"function":"f"})", call).body, keyless.body);
  admin().settle(keyless, "complete", R"(,"result":7)");
  EXPECT_EQ(admin().post("/v1/runs", R"({"function":"f"})", call).at("/result"), "7");
  EXPECT_EQ(admin().post("/v1/runs", R"({"function":"g"})", call).status, 201) << "call names are scoped to a function";

  const Heard open = admin().post("/v1/runs", R"({"function":"f","key":"k","guard":"none"})", call);
  EXPECT_EQ(open.at("/run/guard"), "none");
  EXPECT_EQ(admin().post("/v1/runs", R"({"function":"f","key":"k","guard":"none"})", call).body, open.body)
      << "the run has no guard, but the call is the same";

  const Heard unguarded = admin().post("/v1/runs", R"({"function":"f"})");
  EXPECT_EQ(unguarded.at("/run/guard"), "none");
  EXPECT_FALSE(unguarded.has("/run/key"));
  EXPECT_NE(admin().post("/v1/runs", R"({"function":"f"})").at("/run/id"), unguarded.at("/run/id"));
}

TEST_F(ApiTest, RepeatAfterLostReplyGetsSameRunInTheNextBucket) {
  const auto past_minute = [&] { return clock_.now().time_since_epoch() % std::chrono::seconds{60}; };
  pass_time(std::chrono::seconds{90} - past_minute());
  const std::string body = R"({"function":"f","grain":"1min","lease_ms":600000})";
  const auto call = [&](const char* name) { return admin().post("/v1/runs", body, {{"Idempotency-Key", name}}); };
  const Heard won = call("order 17");
  EXPECT_EQ(won.status, 201);
  pass_time(std::chrono::seconds{45});
  EXPECT_EQ(call("order 17").body, won.body) << "the same run and fence";
  const Heard other = call("order 18");
  EXPECT_EQ(other.status, 201);
  EXPECT_NE(other.at("/run/key"), won.at("/run/key"));
  admin().settle(won, "complete", R"(,"result":7)");
  EXPECT_EQ(call("order 17").at("/result"), "7");
}

TEST_F(ApiTest, CallNamesAreScopedToTheToken) {
  const std::vector<http::ClientHeader> call{{"Idempotency-Key", "order 17"}};
  Caller a = caller(make_token("service", R"(["default"])")), b = caller(make_token("service", R"(["default"])"));
  const char* keyed = R"({"function":"f","key":"k"})";
  ASSERT_EQ(a.post("/v1/runs", keyed, call).status, 201);
  const Heard refused = b.post("/v1/runs", keyed, call);
  EXPECT_EQ(refused.at("/code"), "ALREADY_RUNNING") << "the reply must not contain the other token's fence";
  EXPECT_FALSE(refused.has("/fence"));
  EXPECT_EQ(b.post("/v1/runs", R"({"function":"f"})", call).status, 201);
  EXPECT_EQ(a.post("/v1/runs", R"({"function":"f"})", call).at("/code"), "ALREADY_RUNNING")
      << "without a key, the call's name is the key";
  const char* open = R"({"function":"f","key":"k","guard":"none"})";
  const Heard first = a.post("/v1/runs", open, call), second = b.post("/v1/runs", open, call);
  EXPECT_EQ(first.status, 201);
  EXPECT_EQ(second.status, 201);
  EXPECT_NE(first.at("/run/id"), second.at("/run/id")) << "without a guard, each call gets its own run";
}

TEST_F(ApiTest, KeysAreBuiltFromGrainAndEntity) {
  const char* body = R"({"function":"detect-alerts","tenant":"acme","grain":"day","entity":{"rule_id":"r123"},)"
                     R"("at":"2026-02-06T23:30:00Z","time_zone":"Europe/Oslo","input":{"n":1}})";
  const Heard won = admin().post("/v1/runs", body);
  ASSERT_EQ(won.status, 201) << won.body;
  EXPECT_THAT(won.at("/run/key"), StartsWith("detect-alerts:acme:2026-02-07:"));
  EXPECT_EQ(won.at("/run/key").size(), std::string("detect-alerts:acme:2026-02-07:").size() + 12);
  std::string other(body);
  other.replace(other.find("\"n\":1"), 5, "\"n\":2");
  EXPECT_EQ(admin().post("/v1/runs", other).at("/code"), "ALREADY_RUNNING")
      << "keys built from a grain have no fingerprint";
}

TEST_F(ApiTest, WhileRunningIsALock) {
  const char* lock = R"(,"guard":"while-running","input":1)";
  const Heard won = admin().claim("lock", lock);
  EXPECT_EQ(won.status, 201);
  EXPECT_EQ(admin().claim("lock", R"(,"guard":"while-running","input":2)").at("/code"), "ALREADY_RUNNING");
  admin().settle(won, "complete");
  EXPECT_EQ(admin().claim("lock", lock).status, 201);
}

TEST_F(ApiTest, ProgressIsShownWhileRunning) {
  const Heard won = admin().claim("k");
  const std::string path = "/v1/runs/" + won.at("/run/id");
  EXPECT_FALSE(admin().get(path).has("/progress"));
  EXPECT_EQ(admin().settle(won, "heartbeat", R"(,"progress":{ "done" : 3 })").status, 200);
  EXPECT_THAT(admin().get(path).body, HasSubstr(R"("progress":{ "done" : 3 })"));
  EXPECT_EQ(admin().get(path + "?wait_ms=1").at("/progress/done"), "3");
  EXPECT_EQ(admin().settle(won, "heartbeat").status, 200);
  EXPECT_EQ(admin().get(path).at("/progress/done"), "3")
      << "a heartbeat without progress leaves the progress as it was";
  EXPECT_EQ(admin().post(path + "/heartbeat", R"({"fence":9007199254740991,"progress":7})").at("/code"), "LEASE_LOST");
  EXPECT_EQ(admin().get(path).at("/progress/done"), "3");
  const Heard large = admin().settle(won, "heartbeat", ",\"progress\":\"" + std::string(4095, 'x') + "\"");
  EXPECT_EQ(large.at("/code"), "INVALID_ARGUMENT");
  admin().settle(won, "complete");
  EXPECT_FALSE(admin().get(path).has("/progress"));
}

TEST_F(ApiTest, KeyLookupExplainsSuppressedRuns) {
  const Heard won = admin().claim("k e/y");
  EXPECT_EQ(admin().claim("k e/y", R"(,"caller":"host-7")").status, 409);
  admin().settle(won, "complete");
  EXPECT_EQ(admin().claim("k e/y").status, 200);
  EXPECT_EQ(admin().claim("k e/y").status, 200);
  const Heard why = admin().get("/v1/keys?function=f&key=k+e%2Fy");
  ASSERT_EQ(why.status, 200) << why.body;
  EXPECT_EQ(why.at("/run/id"), won.at("/run/id"));
  std::set<std::string> counts;
  for (int i = 0; i < 2; ++i) {
    const std::string at = "/suppressed/counts/" + std::to_string(i);
    counts.insert(why.at(at + "/reason") + " " + why.at(at + "/count"));
  }
  EXPECT_EQ(counts, (std::set<std::string>{"ALREADY_RUNNING 1", "REPLAYED 2"}));
  EXPECT_EQ(why.at("/suppressed/latest/0/caller"), "host-7");
  EXPECT_EQ(admin().get("/v1/keys?function=f&key=other").status, 404);
  EXPECT_EQ(admin().get("/v1/keys?function=f").status, 400);
}

TEST_F(ApiTest, ListsAreFilteredAndPaged) {
  for (int i = 0; i < 5; ++i) admin().claim("k" + std::to_string(i), R"(,"input":[1, 2])");
  admin().post("/v1/runs", R"({"function":"g","key":"k"})");
  admin().settle(admin().claim("done"), "complete");
  const Heard page = admin().get("/v1/runs?function=f&status=running&limit=3");
  EXPECT_EQ(page.at("/items/0/key"), "k4") << "newest first";
  EXPECT_FALSE(page.has("/items/3"));
  EXPECT_FALSE(page.has("/items/0/input"));
  const Heard rest =
      admin().get("/v1/runs?function=f&status=running&limit=3&cursor=" + http::encode_percent(page.at("/next")));
  EXPECT_EQ(rest.at("/items/1/key"), "k0");
  EXPECT_FALSE(rest.has("/items/2"));
  EXPECT_EQ(rest.at("/next"), "null");
  EXPECT_THAT(admin().get("/v1/runs?key=k0&include=payloads").body, HasSubstr("\"input\":[1, 2]"));
  EXPECT_EQ(admin().get("/v1/runs?since=2999-01-01T00:00:00Z").at("/items"), "[]");
  EXPECT_EQ(admin().get("/v1/runs?key=done").at("/items/0/status"), "completed");
}

TEST_F(ApiTest, PageOfLargePayloadsEndsEarly) {
  const std::string large = R"(,"input":")" + std::string(1'000'000, 'x') + "\"";
  for (int i = 0; i < 10; ++i) ASSERT_EQ(admin().claim("k" + std::to_string(i), large).status, 201);
  const Heard bare = admin().get("/v1/runs?limit=500");
  EXPECT_EQ(bare.at("/items/9/key"), "k0");
  EXPECT_EQ(bare.at("/next"), "null");
  const Heard page = admin().get("/v1/runs?limit=500&include=payloads");
  EXPECT_EQ(page.at("/items/8/key"), "k1") << "the page ends with the run that exceeds 8 MiB";
  EXPECT_FALSE(page.has("/items/9"));
  const Heard rest =
      admin().get("/v1/runs?limit=500&include=payloads&cursor=" + http::encode_percent(page.at("/next")));
  EXPECT_EQ(rest.at("/items/0/key"), "k0");
  EXPECT_EQ(rest.at("/next"), "null");
}

TEST_F(ApiTest, LongPollsEndWhenTheRunSettles) {
  const Heard won = admin().claim("k");
  const std::string target = "/v1/runs/" + won.at("/run/id") + "?wait_ms=20000";
  std::latch waiting(3);
  std::vector<std::jthread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] {
      Caller other = caller(admin_key_);
      waiting.count_down();
      EXPECT_EQ(other.get(target).at("/status"), "completed");
    });
  waiting.wait();
  EXPECT_EQ(admin().get("/v1/runs/" + won.at("/run/id") + "?wait_ms=1").at("/status"), "running")
      << "the poll timed out";
  admin().settle(won, "complete");
  threads.clear();
  EXPECT_EQ(admin().get(target).at("/status"), "completed") << "the run is already settled";
  EXPECT_EQ(admin().get("/v1/runs/00000000-0000-7000-8000-000000000000?wait_ms=20000").status, 404);
  EXPECT_EQ(admin().get("/v1/runs/" + won.at("/run/id") + "?wait_ms=60001").status, 400);
}

TEST_F(ApiTest, StopAnswersLongPolls) {
  const Heard won = admin().claim("k");
  std::jthread waiter([&, url = service_->url()] {
    Caller other(url, admin_key_);
    EXPECT_EQ(other.get("/v1/runs/" + won.at("/run/id") + "?wait_ms=60000").at("/status"), "running");
  });
  Caller watcher = caller("");
  while (watcher.get("/metrics").body.find("latchkey_waiting_requests 1\n") == std::string::npos) {
  }
  service_->stop();
}

}  // namespace
}  // namespace latchkey
