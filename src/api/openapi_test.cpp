// api/openapi.yaml and the code say the same.
#include "api/openapi.hpp"

#include <gtest/gtest.h>
#include <simdjson.h>

#include <algorithm>
#include <set>

#include "api/router.hpp"

namespace latchkey::api {
namespace {

simdjson::dom::element parsed() {
  static simdjson::dom::parser parser;
  static const simdjson::dom::element kRoot = parser.parse(simdjson::padded_string(openapi_json()));
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
  for (const Route& route : routes()) routed.insert(std::string(route.method) + " " + route.pattern());
  EXPECT_EQ(written, routed);
}

TEST(Openapi, SaysWhichRoutesAreOpen) {
  for (const Route& route : routes()) {
    std::string method(route.method), path = route.pattern();
    std::ranges::transform(method, method.begin(), [](char c) { return static_cast<char>(c | 0x20); });
    const auto operation = parsed()["paths"][path][method];
    const bool is_open = operation["security"].error() == simdjson::SUCCESS;
    EXPECT_EQ(is_open, route.access == Access::open) << method << " " << path;
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
}  // namespace latchkey::api
