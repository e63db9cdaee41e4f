// api/openapi.yaml as JSON, built into the program.
#pragma once

#include <string_view>

namespace latchkey::api {

std::string_view openapi_json();

}  // namespace latchkey::api
