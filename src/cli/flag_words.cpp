#include "cli/flag_words.hpp"

#include <string_view>
#include <utility>

namespace latchkey {
namespace {

constexpr std::pair<std::string_view, std::string_view> kWords[] = {
    {"`lease_ms`", "`--lease`"},
    {"`window_ms`", "`--window`"},
    {"`expires_in_ms`", "`--expires`"},
    {"`retry.retries`", "`--retries`"},
    {"`tenant` and the Latchkey-Tenant header", "`--tenant` and the request"},
    {"the Latchkey-Tenant header is empty", "`--tenant` is empty"},
    {"name one in Latchkey-Tenant or `tenant`", "name one with --tenant"},
    {"`tenants` is missing", "`--tenant` is missing"},
    {"`tenant`", "`--tenant`"},
    {"`function`", "`--function`"},
    {"`key`", "`--key`"},
    {"`name`", "`--name`"},
    {"send Authorization: Bearer with a token",
     "no token: name one with --token or LATCHKEY_TOKEN, or use the --data-dir that has the server's admin.key"},
};

}  // namespace

Error with_flag_words(Error error) {
  for (const auto& [from, to] : kWords) {
    for (std::size_t at = 0; (at = error.detail.find(from, at)) != std::string::npos; at += to.size())
      error.detail.replace(at, from.size(), to);
  }
  if (error.code == Code::FORBIDDEN && error.detail.contains("may not act for"))
    error.detail += "; choose with --tenant";
  return error;
}

}  // namespace latchkey
