#include "api/router.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/memory/memory_store.hpp"

namespace latchkey::api {
namespace {

struct Recorder {
  std::string name;
  std::vector<std::string> calls;
};

template <char kHandler>
void record(Recorder& recorder, Call call) {
  recorder.calls.push_back(recorder.name + kHandler + ":" + std::string(call.parameter));
  call.answer.send({.status = 204});
}

class LastResponse final : public http::ReplySink {
 public:
  void deliver(http::Ticket, http::Response response) override { last = std::move(response); }
  void notify(std::shared_ptr<http::StreamBuffer>) override {}  // no test of the router streams a body
  http::StreamLimits stream_limits() const override { return {}; }
  http::Response last;
};

class RouterTest : public ::testing::Test {
 protected:
  RouteGroup first_group() {
    static constexpr Route<Recorder> kRoutes[] = {
        {{"POST", "/v1/things", Access::open}, record<'a'>},
        {{"GET", "/v1/things", Access::open}, record<'b'>},
        {{"GET", "/v1/things/{id}", Access::open}, record<'c'>},
        {{"POST", "/v1/things/{id}/stop", Access::open}, record<'d'>},
        {{"POST", "/v1/things/all", Access::open}, record<'e'>},
    };
    return {first_, kRoutes};
  }
  RouteGroup second_group() {
    static constexpr Route<Recorder> kRoutes[] = {{{"GET", "/v1/others/{name}", Access::open}, record<'a'>},
                                                  {{"GET", "/v1/closed", Access::viewer}, record<'b'>}};
    return {second_, kRoutes};
  }
  int call(std::string_view method, std::string_view path) {
    const Router router(services_, {first_group(), second_group()});
    http::Request request{.method = method, .path = path};
    router.handle(request, http::Reply(sink_, {}));
    return sink_->last.status;
  }

  Recorder first_{.name = "1"}, second_{.name = "2"};
  ManualClock clock_{from_ms(0)};
  SystemRandom random_;
  MemoryStore store_{clock_, random_};
  Services services_{store_};
  std::shared_ptr<LastResponse> sink_ = std::make_shared<LastResponse>();
};

TEST_F(RouterTest, CallsHandlerWithItsGroupsContext) {
  EXPECT_EQ(call("POST", "/v1/things"), 204);
  EXPECT_EQ(call("GET", "/v1/things/7"), 204);
  EXPECT_EQ(call("POST", "/v1/things/7/stop"), 204);
  EXPECT_EQ(call("GET", "/v1/others/x%2Fy"), 204);
  EXPECT_THAT(first_.calls, ::testing::ElementsAre("1a:", "1c:7", "1d:7"));
  EXPECT_THAT(second_.calls, ::testing::ElementsAre("2a:x%2Fy"));
}

TEST_F(RouterTest, ServesHeadAsGet) {
  EXPECT_EQ(call("HEAD", "/v1/things"), 204);
  EXPECT_THAT(first_.calls, ::testing::ElementsAre("1b:"));
}

TEST_F(RouterTest, ExactPathComesBeforeParameter) {
  EXPECT_EQ(call("POST", "/v1/things/all"), 204);
  EXPECT_EQ(call("GET", "/v1/things/all"), 204);
  EXPECT_THAT(first_.calls, ::testing::ElementsAre("1e:", "1c:all"));
}

TEST_F(RouterTest, UnknownPathIsNotFound) {
  for (const char* path : {"", "/", "/v1", "/v1/things/", "/v1/things//stop", "/v1/things/7/8/stop", "/v1/things/7/",
                           "/v1/thing", "/v1/others", "////////", "v1/things"})
    EXPECT_EQ(call("POST", path), 404) << path;
}

TEST_F(RouterTest, OtherMethodIsAnsweredWithAllow) {
  EXPECT_EQ(call("DELETE", "/v1/things"), 405);
  EXPECT_THAT(sink_->last.header_lines, ::testing::HasSubstr("Allow: POST, GET, HEAD\r\n"));
  EXPECT_EQ(call("DELETE", "/v1/things/all"), 405);
  EXPECT_THAT(sink_->last.header_lines, ::testing::HasSubstr("Allow: POST, GET, HEAD\r\n"));
}

TEST_F(RouterTest, ClosedRouteNeedsToken) {
  EXPECT_EQ(call("GET", "/v1/closed"), 401);
  EXPECT_TRUE(second_.calls.empty());
}

TEST_F(RouterTest, RefusesSameMethodAndPath) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // the services have threads
  EXPECT_DEATH(Router(services_, {first_group(), first_group()}), "same method and path");
  static constexpr Route<Recorder> kRenamed[] = {{{"GET", "/v1/things/{name}", Access::open}, record<'a'>}};
  EXPECT_DEATH(Router(services_, {first_group(), RouteGroup(second_, kRenamed)}), "same method and path");
}

TEST_F(RouterTest, RefusesMalformedPaths) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // the services have threads
  for (const char* path : {"/a/{b", "/a/b}", "/a/{}", "/a/x{b}", "/a/{b}x", "/a/{b}/{c}"}) {
    const Route<Recorder> route[] = {{{"GET", path, Access::open}, record<'a'>}};
    EXPECT_DEATH(Router(services_, {RouteGroup(first_, route)}), "brace|parameter") << path;
  }
}

}  // namespace
}  // namespace latchkey::api
