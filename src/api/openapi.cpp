#include "api/openapi.hpp"

namespace latchkey::api {
namespace {

constexpr char kJson[] =
#include <openapi.json.inc>
    ;

}  // namespace

std::string_view openapi_json() { return {kJson, sizeof kJson - 1}; }

}  // namespace latchkey::api
