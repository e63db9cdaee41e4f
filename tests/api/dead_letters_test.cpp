// Dead letters over HTTP: retry and resolve, and the roles that may call them.
#include "api/service_fixture.hpp"

namespace latchkey {
namespace {

class ApiLettersTest : public ServiceTest {
 protected:
  Heard fail_one(std::string_view key) {
    return admin().settle(admin().claim(key), "fail", R"(,"error":{"message":"no","retryable":false})");
  }
};

// covers: A7
TEST_F(ApiLettersTest, DeadLettersAreRetriedAndResolved) {
  const Heard a = fail_one("a"), b = fail_one("b"), c = fail_one("c");
  const std::string letter = "/v1/dead-letters/" + a.at("/dead_letter_id");
  const Heard some =
      admin().post(letter + "/retry", R"({"runs":[")" + a.at("/run/id") + R"("],"fresh_effect_key":true})");
  ASSERT_EQ(some.status, 200) << some.body;
  EXPECT_EQ(some.at("/changed"), "1");
  EXPECT_EQ(admin().get("/v1/runs/" + a.at("/run/id")).at("/generation"), "2");
  EXPECT_EQ(admin().get("/v1/runs/" + b.at("/run/id")).at("/status"), "failed");

  const Heard partial =
      admin().post(letter + "/resolve", R"({"outcome":"failed","note":"known","runs":[")" + b.at("/run/id") + R"("]})");
  EXPECT_EQ(partial.at("/changed"), "1") << partial.body;
  const Heard rest = admin().post(letter + "/resolve", R"({"outcome":"completed","result":{"by":"hand"}})");
  EXPECT_EQ(rest.at("/changed"), "2") << "b and c; a was opened again";
  EXPECT_EQ(rest.at("/unchanged"), "0");
  EXPECT_EQ(rest.at("/refused"), "1");
  EXPECT_EQ(rest.at("/problems/0/run"), a.at("/run/id"));
  EXPECT_EQ(rest.at("/problems/0/detail"), "the run was opened again since and is queued now");
  EXPECT_EQ(admin().claim("c").at("/result/by"), "hand");
  const Heard too_late = admin().post(letter + "/retry");
  EXPECT_EQ(too_late.at("/refused"), "2");
  EXPECT_EQ(too_late.at("/problems/0/code"), "MOVE_REFUSED");

  const Heard entry = admin().get(letter);
  EXPECT_EQ(entry.at("/members/0/steps/0/step"), "retried");
  EXPECT_EQ(entry.at("/members/0/steps/0/by"), "admin.key");
  EXPECT_EQ(entry.at("/members/1/steps/0/step"), "completed");
  EXPECT_EQ(entry.at("/members/1/steps/1/note"), "known");
  EXPECT_TRUE(entry.has("/members/2/steps/0/at"));
}

TEST_F(ApiLettersTest, MembersArePaged) {
  const Heard a = fail_one("a"), b = fail_one("b"), c = fail_one("c");
  const std::string letter = "/v1/dead-letters/" + a.at("/dead_letter_id");
  EXPECT_FALSE(admin().get(letter).has("/next")) << "all members fit on one page";
  const Heard first = admin().get(letter + "?limit=2");
  EXPECT_EQ(first.at("/members/1/run"), b.at("/run/id"));
  EXPECT_FALSE(first.has("/members/2"));
  const Heard second = admin().get(letter + "?limit=2&cursor=" + first.at("/next"));
  EXPECT_EQ(second.at("/members/0/run"), c.at("/run/id"));
  EXPECT_FALSE(second.has("/members/1"));
  EXPECT_FALSE(second.has("/next"));
  for (const char* wrong : {"?cursor=1", "?cursor=1.x", "?cursor=.", "?limit=501", "?page=2"})
    EXPECT_EQ(admin().get(letter + wrong).at("/code"), "INVALID_ARGUMENT") << wrong;
}

TEST_F(ApiLettersTest, OnlyOwnOrgAdminMayChangeThem) {
  const Heard a = fail_one("a");
  const std::string letter = "/v1/dead-letters/" + a.at("/dead_letter_id");
  Caller service = caller(make_token("service", R"(["default"])"));
  Caller own = caller(make_token("org-admin", R"(["default"])"));
  Caller foreign = caller(make_token("org-admin", R"(["globex"])"));
  for (const char* verb : {"/retry", "/resolve"}) {
    EXPECT_EQ(service.post(letter + verb, R"({"outcome":"failed"})").status, 403) << verb;
    EXPECT_EQ(foreign.post(letter + verb, verb[3] == 't' ? "{}" : R"({"outcome":"failed"})").status, 404) << verb;
  }
  EXPECT_EQ(own.post(letter + "/retry").at("/changed"), "1");
  EXPECT_EQ(own.post("/v1/dead-letters/" + a.at("/run/id") + "/retry").status, 404)
      << "a run's id is not a dead letter's id";
}

TEST_F(ApiLettersTest, WrongBodiesAreRejected) {
  const std::string letter = "/v1/dead-letters/" + fail_one("a").at("/dead_letter_id");
  for (const char* body :
       {R"({"outcome":"rerun"})", R"({})", R"({"outcome":"failed","result":1})", R"({"outcome":"failed","runs":[]})",
        R"({"outcome":"failed","runs":["x"]})", R"({"outcome":"failed","run":"x"})"})
    EXPECT_EQ(admin().post(letter + "/resolve", body).at("/code"), "INVALID_ARGUMENT") << body;
  EXPECT_EQ(admin().get("/v1/dead-letters?cursor=zzz").at("/code"), "INVALID_ARGUMENT");
  EXPECT_EQ(admin().get("/v1/runs?cursor=zzz").at("/code"), "INVALID_ARGUMENT");
}

}  // namespace
}  // namespace latchkey
