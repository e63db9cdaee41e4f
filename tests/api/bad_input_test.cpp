// Bad input: every case is rejected with its status and code, and nothing is written.
#include "api/service_fixture.hpp"
#include "support/raw_client.hpp"

namespace latchkey {
namespace {

using ::testing::HasSubstr;

class InputTest : public ServiceTest {};

struct Bad {
  std::string body;
  int status;
  const char* code;
  const char* says;
};

TEST_F(InputTest, BadClaimsAreRejected) {
  const std::string deep = std::string(200, '[') + std::string(200, ']');
  const Bad bad[] = {
      {"{", 400, "INVALID_JSON", ""},
      {"[]", 400, "INVALID_JSON", "object"},
      {"\"x\"", 400, "INVALID_JSON", "object"},
      {R"({"function":"f"} x)", 400, "INVALID_JSON", ""},
      {R"({"function":"f",})", 400, "INVALID_JSON", ""},
      {R"({'function':"f"})", 400, "INVALID_JSON", ""},
      {R"({"function":"f","function":"g"})", 400, "INVALID_JSON", "`function` is there twice"},
      {R"({"function":"f","retry":{"retries":1,"retries":2}})", 400, "INVALID_JSON", "`retry.retries` is there twice"},
      {R"({"function":"f","key":"k","input":{"a":1,"a":2}})", 400, "INVALID_JSON", "`input`"},
      {R"({"function":"f","key":"k","input":"\ud800"})", 400, "INVALID_JSON", ""},
      {"{\"function\":\"\xff\"}", 400, "INVALID_JSON", ""},
      {R"({"function":"f","key":"k","input":)" + deep + "}", 400, "INVALID_JSON", "deeper than 128"},
      {R"({"function":"f","key":"k","input":1e999})", 400, "INVALID_JSON", "number"},
      {R"({"function":"f","key":"k","input":9007199254740993})", 400, "INVALID_JSON", "`input`"},
      {R"({"function":"f","key":"k","input":123456789012345678901234567890})", 400, "INVALID_JSON", "number"},
      {R"({"function":"f","kye":"k"})", 400, "INVALID_ARGUMENT", "did you mean `key`?"},
      {R"({"function":"f","retry":{"retires":1}})", 400, "INVALID_ARGUMENT", "did you mean `retry.retries`?"},
      {R"({"function":"f","key":"k","on_doubt":"probe"})", 400, "INVALID_ARGUMENT", "a function's definition"},
      {R"({"function":"f","retry":{"schedule_ms":[]}})", 400, "INVALID_ARGUMENT", "1 to 64 delays"},
      {R"({"function":"f","retry":{"schedule_ms":[1,"2"]}})", 400, "INVALID_ARGUMENT", "`retry.schedule_ms`"},
      {R"({"function":"f","retry":{"schedule_ms":[1],"factor":2}})", 400, "INVALID_ARGUMENT", "says every delay"},
      {R"({"function":"f","retry":{"jitter_percent":5}})", 400, "INVALID_ARGUMENT", "only with the jitter `percent`"},
      {R"({"function":"f","retry":{"jitter":"percent","jitter_percent":101}})", 400, "INVALID_ARGUMENT", "0 to 100"},
      {R"({"function":"f","retry":{"jitter":"some"}})", 400, "INVALID_ARGUMENT", "decorrelated"},
      {R"({"function":"f","zzzzzzzzzz":1})", 400, "INVALID_ARGUMENT", "`zzzzzzzzzz` is not known"},
      {"{}", 400, "INVALID_ARGUMENT", "`function` is missing"},
      {R"({"function":""})", 400, "INVALID_ARGUMENT", "`function` is missing"},
      {R"({"function":7})", 400, "INVALID_ARGUMENT", "`function` must be a string"},
      {R"({"function":")" + std::string(129, 'f') + "\"}", 400, "INVALID_ARGUMENT", "128"},
      {R"({"function":"f","key":""})", 400, "INVALID_ARGUMENT", "`key` is empty"},
      {R"({"function":"f","key":")" + std::string(513, 'k') + "\"}", 400, "INVALID_ARGUMENT", "512"},
      {R"({"function":"f","key":"a\u0000b"})", 400, "INVALID_ARGUMENT", "control"},
      {R"({"function":"f","key":"k","tenant":"a/b"})", 400, "INVALID_ARGUMENT", "tenant"},
      {R"({"function":"f","key":"k","guard":"twice"})", 400, "INVALID_ARGUMENT", "while-running"},
      {R"({"function":"f","guard":"once"})", 400, "INVALID_ARGUMENT", "`guard` needs"},
      {R"({"function":"f","key":"k","lease_ms":999})", 400, "INVALID_ARGUMENT", "lease_ms"},
      {R"({"function":"f","key":"k","lease_ms":86400001})", 400, "INVALID_ARGUMENT", "lease_ms"},
      {R"({"function":"f","key":"k","lease_ms":-1})", 400, "INVALID_ARGUMENT", "lease_ms"},
      {R"({"function":"f","key":"k","lease_ms":1.5})", 400, "INVALID_ARGUMENT", "whole number"},
      {R"({"function":"f","key":"k","lease_ms":"60s"})", 400, "INVALID_ARGUMENT", "whole number"},
      {R"({"function":"f","key":"k","window_ms":18446744073709551615})", 400, "INVALID_ARGUMENT", "window_ms"},
      {R"({"function":"f","key":"k","retry":{"retries":1001}})", 400, "INVALID_ARGUMENT", "retries"},
      {R"({"function":"f","key":"k","retry":{"jitter":"some"}})", 400, "INVALID_ARGUMENT", "additive"},
      {R"({"function":"f","key":"k","retry":3})", 400, "INVALID_ARGUMENT", "`retry` must be an object"},
      {R"({"function":"f","key":"k","on_doubt":"ask"})", 400, "INVALID_ARGUMENT", "rerun or hold"},
      {R"({"function":"f","key":"k","fingerprint":"abc"})", 400, "INVALID_ARGUMENT", "64 hexadecimal"},
      {R"({"function":"f","key":"k","grain":"day"})", 400, "INVALID_ARGUMENT", "not both"},
      {R"({"function":"f","entity":{}})", 400, "INVALID_ARGUMENT", "`entity` needs `grain`"},
      {R"({"function":"f","grain":"fortnight"})", 400, "INVALID_ARGUMENT", ""},
      {R"({"function":"f","grain":"day","time_zone":"Mars/Base"})", 400, "INVALID_ARGUMENT", ""},
      {R"({"function":"f","grain":"day","at":"yesterday"})", 400, "INVALID_ARGUMENT", "RFC 3339"},
      {R"({"function":"f","grain":"day","entity":[1]})", 400, "INVALID_JSON", ""},
      {R"({"function":"f","key":"k","fingerprint":null,"input":")" + std::string(1'048'576, 'x') + "\"}", 413,
       "BODY_TOO_LARGE", "input"},
  };
  for (const Bad& one : bad) {
    const Heard heard = admin().post("/v1/runs", one.body);
    SCOPED_TRACE(one.body.substr(0, 200));
    EXPECT_EQ(heard.status, one.status);
    EXPECT_EQ(heard.at("/code"), one.code);
    EXPECT_THAT(heard.at("/detail"), HasSubstr(one.says));
    EXPECT_EQ(heard.header("content-type"), "application/problem+json");
  }
  EXPECT_EQ(admin().get("/v1/runs").at("/items"), "[]") << "nothing was written";
}

TEST_F(InputTest, BadSettlesAreRejected) {
  const Heard won = admin().claim("k");
  const std::string path = "/v1/runs/" + won.at("/run/id"), fence = R"({"fence":)" + won.at("/fence");
  const std::pair<std::string, std::string> bad[] = {
      {"/complete", "{}"},
      {"/complete", R"({"fence":"1"})"},
      {"/complete", R"({"fence":1.5})"},
      {"/complete", R"({"fence":-1})"},
      {"/complete", R"({"fence":0})"},
      {"/complete", R"({"fence":9007199254740992})"},
      {"/complete", R"({"fence":null})"},
      {"/complete", fence + R"(,"follow_ups":{}})"},
      {"/heartbeat", fence + R"(,"lease_ms":1})"},
      {"/heartbeat", fence + R"(,"progres":1})"},
      {"/fail", fence + "}"},
      {"/fail", fence + R"(,"error":"no"})"},
      {"/fail", fence + R"(,"error":{}})"},
      {"/fail", fence + R"(,"error":{"message":"x","retryable":"yes"}})"},
      {"/cancel", R"({"why":1})"},
      {"/resolve", "{}"},
  };
  for (const auto& [verb, body] : bad) {
    const Heard heard = admin().post(path + verb, body);
    EXPECT_EQ(heard.status, 400) << verb << body;
    EXPECT_EQ(heard.at("/code"), "INVALID_ARGUMENT") << verb << body;
  }
  const Heard follow_up = admin().post(path + "/complete", fence + R"(,"follow_ups":[{"function":"g"}]})");
  EXPECT_EQ(follow_up.status, 404);
  EXPECT_EQ(follow_up.at("/code"), "FUNCTION_UNKNOWN");
  EXPECT_EQ(admin().get(path).at("/status"), "running") << "the run is unchanged";
  EXPECT_EQ(admin().post(path + "/complete", fence + R"(,"follow_ups":[]})").status, 200);
}

TEST_F(InputTest, BadTokenRequestsAreRejected) {
  const std::string before = admin().get("/v1/tokens").body;
  for (const std::string& name : {std::string(R"(a\u0000b)"), std::string(R"(a\nb)"), std::string(129, 'n')}) {
    const Heard heard = admin().post("/v1/tokens", R"({"role":"admin","name":")" + name + "\"}");
    EXPECT_EQ(heard.status, 400) << name;
    EXPECT_EQ(heard.at("/code"), "INVALID_ARGUMENT") << name;
    EXPECT_THAT(heard.at("/detail"), HasSubstr("`name`")) << name;
  }
  EXPECT_EQ(admin().get("/v1/tokens").body, before) << "nothing was written";
}

TEST_F(InputTest, BadHeadersAndParametersAreRejected) {
  const std::string body = R"({"function":"f","key":"k"})";
  const std::string token = "Bearer " + admin_key_;
  Caller plain = caller("");
  const auto send = [&](std::vector<http::ClientHeader> headers) {
    headers.push_back({"Authorization", token});
    const auto heard = plain.client().call("POST", "/v1/runs", headers, body, std::chrono::seconds{10});
    return heard ? heard->status : 0;
  };
  EXPECT_EQ(send({}), 415);
  EXPECT_EQ(send({{"Content-Type", "text/plain"}}), 415);
  EXPECT_EQ(send({{"Content-Type", "application/jsonx"}}), 415);
  EXPECT_EQ(send({{"Content-Type", "Application/JSON ; charset=utf-8"}}), 201);
  EXPECT_EQ(send({{"Content-Type", "application/x+json"}}), 409);
  EXPECT_EQ(send({{"Content-Type", "application/json"}, {"Content-Encoding", "gzip"}}), 415);
  EXPECT_EQ(send({{"Content-Type", "application/json"}, {"Content-Encoding", "Identity"}}), 409);
  EXPECT_EQ(send({{"Content-Type", "application/json"}, {"Latchkey-Tenant", "a"}, {"Latchkey-Tenant", "b"}}), 400);
  EXPECT_EQ(admin().post("/v1/runs", body, {{"Idempotency-Key", std::string(256, 'x')}}).status, 400);
  EXPECT_EQ(admin().post("/v1/runs", body, {{"Idempotency-Key", "\xc3\xa9"}}).status, 400);
  EXPECT_EQ(admin().post("/v1/runs", body, {{"X", std::string(100'000, 'x')}}).status, 431);

  for (const char* query : {"limit=0", "limit=501", "limit=x", "status=done", "since=now", "include=all",
                            "limit=1&limit=2", "key=%zz", "tenant=a/b"})
    EXPECT_EQ(admin().get("/v1/runs?" + std::string(query)).at("/code"), "INVALID_ARGUMENT") << query;
  EXPECT_THAT(admin().get("/v1/runs?staus=failed").at("/detail"), HasSubstr("did you mean `status`?"));
  EXPECT_EQ(admin().get("/v1/dead-letters?acknowledged=1").status, 400);
}

// The server checks these filters itself, so both stores reject the same ones.
TEST_F(InputTest, FiltersWithInvalidTextAreRejected) {
  for (const char* list : {"/v1/runs?", "/v1/dead-letters?", "/v1/keys?function=f&key=k&"})
    for (const std::string value : {"%ff", "%00", "a%c3", "%0a"})
      for (const std::string filter : {"function", "tenant", "key", "cursor", "status", "since"}) {
        const std::string target = list + filter + "=" + value;
        const Heard heard = admin().get(target);
        EXPECT_EQ(heard.status, 400) << target;
        EXPECT_EQ(heard.at("/code"), "INVALID_ARGUMENT") << target;
      }
  EXPECT_EQ(admin().get("/v1/runs?function=%c3%a9&key=%c3%a9").status, 200);
  EXPECT_EQ(admin().get("/v1/runs?function=&key=&tenant=").status, 200) << "an empty filter matches every run";
  EXPECT_EQ(admin().get("/v1/dead-letters?function=%c3%a9").status, 200);
}

TEST_F(InputTest, UnknownPathsAndMethodsAreRejected) {
  for (const char* path : {"/", "/v1", "/v1/runs/", "/v1/run", "/v1/runs/x/y", "/v1/runs/x/complete/", "/v2/runs"})
    EXPECT_EQ(admin().get(path).at("/code"), "NOT_FOUND") << path;
  const Heard heard = admin().call("DELETE", "/v1/runs");
  EXPECT_EQ(heard.status, 405);
  EXPECT_EQ(heard.at("/code"), "METHOD_NOT_ALLOWED");
  EXPECT_EQ(heard.header("allow"), "POST, GET, HEAD");
  EXPECT_EQ(admin().call("GET", "/v1/runs/x/complete").header("allow"), "POST");
  testing::RawClient raw(service_->port());
  raw.send("HEAD /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(raw.read_response(false), ::testing::StartsWith("HTTP/1.1 200 "));
}

TEST_F(InputTest, OversizedBodiesAreRejected) {
  const Heard heard = admin().post("/v1/runs", std::string(2 * 1024 * 1024 + 1, ' '));
  EXPECT_EQ(heard.status, 413);
  EXPECT_EQ(heard.at("/code"), "BODY_TOO_LARGE");
}

}  // namespace
}  // namespace latchkey
