#include "api/openapi.hpp"

namespace latchkey::api {
namespace {

constexpr char kJson[] = {
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wc23-extensions"
#embed "openapi.json"
#pragma clang diagnostic pop
};

}  // namespace

std::string_view openapi_json() { return {kJson, sizeof kJson}; }

}  // namespace latchkey::api
