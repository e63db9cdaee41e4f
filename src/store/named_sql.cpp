#include "store/named_sql.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace latchkey {
namespace {

constexpr std::string_view kName = "-- name: ", kComment = "--";

[[noreturn]] void refuse(const std::string& what, std::string_view name) {
  assert_failed((what + " " + std::string(name)).c_str(), __FILE__, __LINE__);
}

std::string_view trim(std::string_view line) {
  const std::size_t from = line.find_first_not_of(' ');
  return from == line.npos ? std::string_view() : line.substr(from, line.find_last_not_of(' ') + 1 - from);
}

// Adds the file's texts, without comments and line ends.
void split(std::string_view file, NamedSql::Texts& into) {
  std::string* text = nullptr;  // none before the first name
  while (!file.empty()) {
    const std::size_t end = std::min(file.find('\n'), file.size());
    const std::string_view line = trim(file.substr(0, end));
    file.remove_prefix(std::min(end + 1, file.size()));
    if (line.starts_with(kName)) {
      const auto [at, is_new] = into.try_emplace(std::string(line.substr(kName.size())));
      if (!is_new) refuse("SQL that is named twice:", at->first);
      text = &at->second;
    } else if (text && !line.empty() && !line.starts_with(kComment)) {
      if (!text->empty() && !text->ends_with('(') && !line.starts_with(')')) *text += ' ';
      *text += line;
    }
  }
}

// Moves the texts from `raw` to `done`, each after the texts that it names. A text that contains itself is in neither
// map when its own name is looked up, so it is refused.
class Expansion {
 public:
  Expansion(NamedSql::Texts raw, NamedSql::Texts& done) : raw_(std::move(raw)), done_(done) {
    while (!raw_.empty()) expand(std::string(raw_.begin()->first));
  }

 private:
  const std::string& expand(const std::string& name) {
    if (const auto known = done_.find(name); known != done_.end()) return known->second;
    const auto own = raw_.extract(name);
    if (own.empty()) refuse("no SQL is named", name);
    const std::string_view text = own.mapped();
    std::string whole;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t open = std::min(text.find('{', at), text.size());
      whole += text.substr(at, open - at);
      if (open == text.size()) break;
      const std::size_t close = text.find('}', open);
      if (close == text.npos) refuse("a name that does not end in the SQL named", name);
      whole += expand(std::string(text.substr(open + 1, close - open - 1)));
      at = close + 1;
    }
    return done_.emplace(name, std::move(whole)).first->second;
  }

  NamedSql::Texts raw_;
  NamedSql::Texts& done_;
};

}  // namespace

NamedSql::NamedSql(std::initializer_list<std::string_view> files) {
  Texts raw;
  for (const std::string_view file : files) split(file, raw);
  Expansion(std::move(raw), texts_);
}

const std::string& NamedSql::find(std::string_view name) const {
  const auto at = texts_.find(name);
  if (at == texts_.end()) refuse("no SQL is named", name);
  return at->second;
}

}  // namespace latchkey
