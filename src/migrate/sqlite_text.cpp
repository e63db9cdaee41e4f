#include "migrate/sqlite_text.hpp"

#include <algorithm>
#include <cctype>

namespace latchkey::migrate {
namespace {

bool is_name_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_space(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }
bool is_plain_name(std::string_view name) {
  return !name.empty() && std::isdigit(static_cast<unsigned char>(name[0])) == 0 &&
         std::ranges::all_of(name, is_name_char);
}

// The position after the closing quote of the one at `at`. A doubled quote is a part of the text.
std::size_t find_end(std::string_view sql, std::size_t at) {
  const char quote = sql[at];
  for (at += 1; at < sql.size(); ++at) {
    if (sql[at] != quote) continue;
    if (at + 1 >= sql.size() || sql[at + 1] != quote) return at + 1;
    at += 1;
  }
  return sql.size();
}

}  // namespace

std::string normalise_sqlite(std::string_view sql) {
  std::string out;
  bool gap = false;
  const auto put = [&](std::string_view token) {
    if (gap && !out.empty() && is_name_char(out.back()) && is_name_char(token.front())) out.push_back(' ');
    gap = false;
    out.append(token);
  };
  for (std::size_t at = 0; at < sql.size();) {
    const char c = sql[at];
    if (is_space(c)) {
      gap = true, at += 1;
    } else if (sql.substr(at).starts_with("--")) {
      gap = true, at = std::min(sql.find('\n', at), sql.size());
    } else if (sql.substr(at).starts_with("/*")) {
      const std::size_t end = sql.find("*/", at + 2);
      gap = true, at = end == sql.npos ? sql.size() : end + 2;
    } else if (c == '\'' || c == '"') {
      const std::size_t end = find_end(sql, at);
      const std::string_view token = sql.substr(at, end - at);
      const std::string_view name = token.size() > 2 ? token.substr(1, token.size() - 2) : std::string_view();
      gap = gap || c == '"';
      put(c == '"' && is_plain_name(name) ? name : token);
      gap = c == '"';
      at = end;
    } else {
      std::size_t end = at + 1;
      if (is_name_char(c))
        while (end < sql.size() && is_name_char(sql[end])) end += 1;
      put(sql.substr(at, end - at));
      at = end;
    }
  }
  return out;
}

}  // namespace latchkey::migrate
