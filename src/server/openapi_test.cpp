// api/openapi.yaml and the composed server agree.
#include "api/openapi.hpp"

#include <gtest/gtest.h>
#include <simdjson.h>

#include <algorithm>
#include <set>

#include "server/composed_api.hpp"
#include "store/memory/memory_store.hpp"

namespace latchkey {
namespace {

const std::vector<api::RouteSpec>& routes() {
  static const std::vector<api::RouteSpec> kRoutes = [] {
    SystemClock clock;
    SystemRandom random;
    MemoryStore store(clock, random);
    Engine engine(store, clock, {});
    return ComposedApi(engine, clock, random).router.routes();
  }();
  return kRoutes;
}

simdjson::dom::element parsed() {
  static simdjson::dom::parser parser;
  static const simdjson::dom::element kRoot = parser.parse(simdjson::padded_string(api::openapi_json()));
  return kRoot;
}

TEST(Openapi, HasEveryRouteAndNoOther) {
  std::set<std::string> written, routed;
  for (const auto [path, item] : simdjson::dom::object(parsed()["paths"]))
    for (const auto [method, operation] : simdjson::dom::object(item)) {
      if (method == "parameters") continue;
      std::string upper(method);
      std::ranges::transform(upper, upper.begin(), [](char c) { return static_cast<char>(c & ~0x20); });
      written.insert(upper + " " + std::string(path));
      EXPECT_EQ(operation["operationId"].error(), simdjson::SUCCESS) << path;
    }
  for (const api::RouteSpec& route : routes()) routed.insert(std::string(route.method) + " " + std::string(route.path));
  EXPECT_EQ(written, routed);
}

TEST(Openapi, MarksOpenRoutes) {
  for (const api::RouteSpec& route : routes()) {
    std::string method(route.method), path(route.path);
    std::ranges::transform(method, method.begin(), [](char c) { return static_cast<char>(c | 0x20); });
    const auto operation = parsed()["paths"][path][method];
    const bool is_open = operation["security"].error() == simdjson::SUCCESS;
    EXPECT_EQ(is_open, route.access == api::Access::open) << method << " " << path;
  }
}

TEST(Openapi, HasEveryCode) {
  std::set<std::string_view> written;
  for (const auto code : simdjson::dom::array(parsed()["components"]["schemas"]["Code"]["enum"])) written.insert(code);
  const std::set<std::string_view> known{
#define LK_ERROR_CODE(name, status, retryable, title) #name,
#include "base/error_codes.def"
#undef LK_ERROR_CODE
  };
  EXPECT_EQ(written, known);
}

}  // namespace
}  // namespace latchkey
