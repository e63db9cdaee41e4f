// The pages of docs/errors, which are part of the program.
#pragma once

#include <string>
#include <string_view>

namespace latchkey::api {

// A row per page, made by CMake.
struct ErrorPage {
  std::string_view code;
  std::string_view markdown;
};

// The sections "When you see it" and "What to do" of a code's page as plain text; empty for an unknown code.
std::string find_error_help(std::string_view code);

}  // namespace latchkey::api
