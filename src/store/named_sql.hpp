// NamedSql: the statements of .sql files, by name. In a file, each statement begins with a line `-- name: xyz`; all
// other comment lines are ignored. `{xyz}` is replaced by the text of that name, from any of the files: for example a
// list of columns that several statements share.
//
// The constructor assembles all texts, each on one line and without comments. A name that is used twice or is unknown,
// and a text that contains itself, are broken invariants. Afterwards the texts do not change; any thread may read them.
#pragma once

#include <functional>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>

namespace latchkey {

class NamedSql {
 public:
  using Texts = std::map<std::string, std::string, std::less<>>;

  explicit NamedSql(std::initializer_list<std::string_view> files);
  // An unknown name is a broken invariant. The text lives as long as this object.
  const std::string& find(std::string_view name) const;
  const Texts& all() const { return texts_; }

 private:
  Texts texts_;
};

}  // namespace latchkey
