#include "api/error_pages.hpp"

#include <algorithm>

namespace latchkey::api {
namespace {

constexpr ErrorPage kPages[] = {
#include <error_pages.inc>
};

constexpr std::string_view kHeading = "## ";

}  // namespace

std::string find_error_help(std::string_view code) {
  const auto page = std::ranges::find(kPages, code, &ErrorPage::code);
  if (page == std::end(kPages)) return {};
  std::string_view rest = page->markdown;
  rest.remove_prefix(std::min(rest.find(kHeading), rest.size()));
  std::string text;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size() - 1) + 1;
    std::string_view line = rest.substr(0, end);
    if (line.starts_with(kHeading)) line.remove_prefix(kHeading.size());
    text.append(line);
    rest.remove_prefix(end);
  }
  return text;
}

}  // namespace latchkey::api
