// NamedSql: the statements of .sql files, by name. In a file each begins with a line `-- name: xyz`; all other lines of
// comment are for its readers. `{xyz}` stands for the text of that name, in whichever of the files it is: a list of
// columns, say, that several statements share.
//
// All is put together once, each text on one line, without its comments. What is named twice, and what names a text
// that is not there or contains itself, is a broken invariant: no file that has such a thing passes its first test.
// Afterwards nothing of it changes: it may be read from any thread.
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
  // There must be one. It lives as long as this.
  const std::string& find(std::string_view name) const;
  const Texts& all() const { return texts_; }

 private:
  Texts texts_;
};

}  // namespace latchkey
