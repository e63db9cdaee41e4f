// Tokens, roles and tenants.
#include <map>
#include <regex>

#include "api/service_fixture.hpp"

namespace latchkey {
namespace {

using namespace std::chrono_literals;
using api::Access;

class AuthTest : public ServiceTest {};

// covers: C7
TEST_F(AuthTest, EveryRouteRequiresItsRole) {
  Caller no_token = caller(""), viewer = caller(make_token("viewer", R"(["t"])")),
         service = caller(make_token("service", R"(["t"])")), org_admin = caller(make_token("org-admin", R"(["t"])"));
  for (const api::RouteSpec& route : service_->routes()) {
    const std::string path = std::regex_replace(std::string(route.path), std::regex(R"(\{\w+\})"), "none");
    const bool is_open = route.access == Access::open || route.access == Access::open_on_loopback;
    SCOPED_TRACE(std::string(route.method) + " " + path);
    const auto status = [&](Caller& who) { return who.call(route.method, path).status; };
    const auto may = [&](Caller& who) {
      const int answered = status(who);
      EXPECT_NE(answered, 401);
      return answered != 403;
    };
    EXPECT_EQ(status(no_token) != 401, is_open);
    EXPECT_EQ(may(viewer), is_open || route.access == Access::viewer);
    EXPECT_EQ(may(service), is_open || route.access <= Access::service);
    EXPECT_EQ(may(org_admin), is_open || route.access <= Access::org_admin);
    EXPECT_TRUE(may(admin()));
  }
}

// The design's table of roles is repeated here, so an accidental change in the router fails this test.
TEST_F(AuthTest, RouterRolesMatchTheDesign) {
  const std::map<std::string, Access> expected{
      {"POST /v1/runs", Access::service},
      {"POST /v1/runs/{id}/complete", Access::service},
      {"POST /v1/runs/{id}/heartbeat", Access::service},
      {"POST /v1/runs/{id}/fail", Access::service},
      {"POST /v1/runs/{id}/release", Access::service},
      {"POST /v1/runs/{id}/cancel", Access::service},
      {"GET /v1/runs/{id}", Access::viewer},
      {"GET /v1/runs", Access::viewer},
      {"GET /v1/keys", Access::viewer},
      {"GET /v1/dead-letters", Access::viewer},
      {"GET /v1/dead-letters/{id}", Access::viewer},
      {"POST /v1/runs/{id}/retry", Access::org_admin},
      {"POST /v1/runs/{id}/resolve", Access::org_admin},
      {"POST /v1/dead-letters/{id}/acknowledge", Access::org_admin},
      {"POST /v1/dead-letters/{id}/retry", Access::org_admin},
      {"POST /v1/dead-letters/{id}/resolve", Access::org_admin},
      {"GET /v1/tokens", Access::org_admin},
      {"POST /v1/tokens", Access::org_admin},
      {"DELETE /v1/tokens/{id}", Access::org_admin},
      {"GET /healthz", Access::open},
      {"GET /readyz", Access::open},
      {"GET /openapi.json", Access::open},
      {"GET /errors/{code}", Access::open},
      {"GET /metrics", Access::open_on_loopback},
  };
  std::map<std::string, Access> found;
  for (const api::RouteSpec& route : service_->routes())
    found[std::string(route.method) + " " + std::string(route.path)] = route.access;
  EXPECT_EQ(found, expected);
}

TEST_F(AuthTest, InvalidTokensGetOneReply) {
  const std::string good = make_token("viewer", R"(["t"])");
  std::string secret = good, id = good, checksum = good;
  secret[30] = secret[30] == 'a' ? 'b' : 'a';
  id[5] = id[5] == 'a' ? 'b' : 'a';
  checksum.back() = checksum.back() == 'a' ? 'b' : 'a';
  EXPECT_EQ(caller(good).get("/v1/runs").status, 200);
  std::string said;
  for (const std::string& bad : {secret, id, checksum, std::string("x"), std::string("lk_"), good + "x"}) {
    const Heard heard = caller(bad).get("/v1/runs");
    EXPECT_EQ(heard.status, 401) << bad;
    EXPECT_EQ(heard.at("/code"), "UNAUTHENTICATED");
    EXPECT_TRUE(heard.header("www-authenticate"));
    if (!said.empty()) EXPECT_EQ(heard.body, said);
    said = heard.body;
  }
  Caller no_token = caller("");
  EXPECT_EQ(no_token.call("GET", "/v1/runs", "", {{"Authorization", "Basic " + good}}).status, 401);
  EXPECT_EQ(no_token.call("GET", "/v1/runs", "", {{"Authorization", "bearer " + good}}).status, 200);
}

TEST_F(AuthTest, TokensExpireAndAreRevoked) {
  const Heard made =
      admin().post("/v1/tokens", R"({"role":"viewer","tenants":["t"],"name":"CI \"x\"","expires_in_ms":60000})");
  ASSERT_EQ(made.status, 201) << made.body;
  const std::string brief = made.at("/token");
  EXPECT_EQ(caller(brief).get("/v1/runs").status, 200);
  pass_time(61s);
  EXPECT_EQ(caller(brief).get("/v1/runs").status, 401);

  const Heard second = admin().post("/v1/tokens", R"({"role":"viewer","tenants":["t"]})");
  Caller revoked = caller(second.at("/token"));
  EXPECT_EQ(revoked.get("/v1/runs").status, 200);
  const std::string path = "/v1/tokens/" + second.at("/id");
  EXPECT_EQ(admin().call("DELETE", path).status, 204);
  EXPECT_EQ(revoked.get("/v1/runs").status, 401);
  EXPECT_EQ(admin().call("DELETE", path).status, 204) << "revoking twice succeeds";
  EXPECT_EQ(admin().call("DELETE", "/v1/tokens/none").status, 404);
  const Heard list = admin().get("/v1/tokens");
  EXPECT_THAT(list.body, ::testing::HasSubstr(R"("name":"CI \"x\"")"));
  EXPECT_THAT(list.body, ::testing::HasSubstr("revoked_at"));
  EXPECT_THAT(list.body, ::testing::Not(::testing::HasSubstr(second.at("/token"))));
}

TEST_F(AuthTest, OrgAdminCreatesTokensForOwnTenantsOnly) {
  Caller acme = caller(make_token("org-admin", R"(["acme"])"));
  const std::string globex = make_token("viewer", R"(["globex"])");
  EXPECT_EQ(acme.post("/v1/tokens", R"({"role":"service"})").at("/tenants"), R"(["acme"])");
  EXPECT_EQ(acme.post("/v1/tokens", R"({"role":"org-admin","tenants":["acme"]})").status, 201);
  EXPECT_EQ(acme.post("/v1/tokens", R"({"role":"viewer","tenants":["globex"]})").status, 403);
  EXPECT_EQ(acme.post("/v1/tokens", R"({"role":"viewer","tenants":["acme","globex"]})").status, 403);
  EXPECT_EQ(acme.post("/v1/tokens", R"({"role":"admin"})").status, 403);
  EXPECT_EQ(admin().post("/v1/tokens", R"({"role":"viewer"})").status, 400) << "a viewer token needs a tenant";
  EXPECT_EQ(admin().post("/v1/tokens", R"({"role":"admin","tenants":["acme"]})").status, 400);
  EXPECT_EQ(acme.call("DELETE", "/v1/tokens/" + globex.substr(3, 16)).status, 404);
  EXPECT_EQ(acme.call("DELETE", "/v1/tokens/" + admin_key_.substr(3, 16)).status, 404);
  EXPECT_EQ(caller(globex).get("/v1/runs").status, 200);
  EXPECT_THAT(acme.get("/v1/tokens").body, ::testing::Not(::testing::HasSubstr("globex")));
}

TEST_F(AuthTest, TenantsAreIsolated) {
  Caller acme = caller(make_token("org-admin", R"(["acme"])")),
         globex = caller(make_token("org-admin", R"(["globex"])"));
  const Heard acme_run = acme.claim("k", R"(,"retry":{"retries":0})");
  const Heard globex_run = globex.claim("k");
  EXPECT_EQ(acme_run.status, 201);
  EXPECT_EQ(globex_run.status, 201) << "another tenant may use the same key";
  const std::string run = "/v1/runs/" + acme_run.at("/run/id"),
                    unknown = "/v1/runs/00000000-0000-7000-8000-000000000000";
  const std::string fence = R"({"fence":)" + acme_run.at("/fence");
  const std::pair<const char*, std::string> calls[] = {{"/heartbeat", fence + "}"},
                                                       {"/complete", fence + "}"},
                                                       {"/release", fence + "}"},
                                                       {"/fail", fence + R"(,"error":{"message":"x"}})"},
                                                       {"/cancel", "{}"},
                                                       {"/retry", "{}"},
                                                       {"/resolve", R"({"outcome":"rerun"})"}};
  for (const auto& [verb, body] : calls) {
    const Heard foreign = globex.post(run + verb, body);
    EXPECT_EQ(foreign.status, 404) << verb;
    EXPECT_EQ(foreign.body, globex.post(unknown + verb, body).body) << verb;
    EXPECT_EQ(foreign.body, globex.post("/v1/runs/x" + std::string(verb), body).body) << verb;
  }
  EXPECT_EQ(globex.get(run).body, globex.get(unknown).body);
  EXPECT_EQ(globex.get(run).status, 404);
  EXPECT_EQ(acme.get(run).status, 200) << "the run is unchanged";

  const std::string letter = acme.settle(acme_run, "fail", R"(,"error":{"message":"x"})").at("/dead_letter_id");
  EXPECT_EQ(globex.get("/v1/dead-letters/" + letter).status, 404);
  EXPECT_EQ(globex.post("/v1/dead-letters/" + letter + "/acknowledge").status, 404);
  EXPECT_EQ(globex.get("/v1/dead-letters").at("/items"), "[]");
  EXPECT_EQ(globex.get("/v1/runs").at("/items/0/id"), globex_run.at("/run/id"));
  EXPECT_FALSE(globex.get("/v1/runs").has("/items/1"));
  EXPECT_EQ(globex.get("/v1/keys?function=f&key=k").at("/run/id"), globex_run.at("/run/id"));
  for (const char* tenant : {"acme", "no-such-tenant"}) {
    EXPECT_EQ(globex.get("/v1/runs?tenant=" + std::string(tenant)).status, 403);
    EXPECT_EQ(globex.claim("k", R"(,"tenant":")" + std::string(tenant) + "\"").at("/code"), "FORBIDDEN");
  }
  EXPECT_TRUE(admin().get("/v1/runs").has("/items/1")) << "an admin lists the runs of all tenants";
}

TEST_F(AuthTest, MultiTenantTokenMustNameTenant) {
  Caller both = caller(make_token("service", R"(["acme","globex"])"));
  EXPECT_EQ(both.claim("k").status, 400) << "the request names no tenant";
  EXPECT_EQ(both.claim("k", R"(,"tenant":"acme")").at("/run/tenant"), "acme");
  const std::string body = R"({"function":"f","key":"k"})";
  const Heard won = both.post("/v1/runs", body, {{"Latchkey-Tenant", "globex"}});
  EXPECT_EQ(won.at("/run/tenant"), "globex");
  EXPECT_EQ(both.call("GET", won.header("location").value(), "", {{"Latchkey-Tenant", "globex"}}).status, 200);
  EXPECT_EQ(both.call("GET", won.header("location").value(), "", {{"Latchkey-Tenant", "acme"}}).status, 404);
  const Heard conflict =
      both.post("/v1/runs", R"({"function":"f","key":"k","tenant":"acme"})", {{"Latchkey-Tenant", "globex"}});
  EXPECT_EQ(conflict.status, 400);
  EXPECT_EQ(both.post("/v1/runs", body, {{"Latchkey-Tenant", "other"}}).status, 403);
  EXPECT_EQ(both.post("/v1/runs", body, {{"Latchkey-Tenant", "a b"}}).status, 400);
}

}  // namespace
}  // namespace latchkey
