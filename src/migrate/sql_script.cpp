#include "migrate/sql_script.hpp"

#include <algorithm>
#include <cctype>

namespace latchkey::migrate {
namespace {

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}
char upper(char c) { return static_cast<char>(std::toupper(static_cast<unsigned char>(c))); }

// Scanner: splits a script into tokens.
class Scanner {
 public:
  enum class Token { end, space, word, semicolon, other };

  explicit Scanner(std::string_view text) : text_(text) {}
  std::size_t at() const { return at_; }

  // Comments are skipped; a quoted text is one `other` token.
  Token next(std::string& word) {
    if (at_ >= text_.size()) return Token::end;
    const char c = text_[at_];
    if (std::isspace(static_cast<unsigned char>(c)) != 0) return at_ += 1, Token::space;
    if (starts("--")) return skip_to("\n"), Token::space;
    if (starts("/*")) return skip_comment(), Token::space;
    if (c == ';') return at_ += 1, Token::semicolon;
    if (c == '\'') return skip_quoted('\'', false), Token::other;
    if (c == '"') return skip_quoted('"', false), Token::other;
    if (c == '$' && skip_dollars()) return Token::other;
    if (is_word(c)) return read_word(word);
    return at_ += 1, Token::other;
  }

 private:
  bool starts(std::string_view with) const { return text_.substr(at_).starts_with(with); }
  void skip_to(std::string_view end) {
    const std::size_t found = text_.find(end, at_);
    at_ = found == text_.npos ? text_.size() : found + end.size();
  }
  // Comments nest.
  void skip_comment() {
    int depth = 0;
    while (at_ < text_.size()) {
      if (starts("/*")) {
        depth += 1, at_ += 2;
      } else if (starts("*/")) {
        depth -= 1, at_ += 2;
        if (depth == 0) return;
      } else {
        at_ += 1;
      }
    }
  }
  // A text with a doubled quote is scanned as two texts, which makes no difference here.
  void skip_quoted(char quote, bool escapes) {
    for (at_ += 1; at_ < text_.size(); ++at_) {
      if (escapes && text_[at_] == '\\') {
        at_ += 1;
      } else if (text_[at_] == quote) {
        at_ += 1;
        return;
      }
    }
    at_ = std::min(at_, text_.size());
  }
  // $$ … $$, $tag$ … $tag$; false for $1.
  bool skip_dollars() {
    std::size_t end = at_ + 1;
    while (end < text_.size() && is_word(text_[end])) end += 1;
    if (end >= text_.size() || text_[end] != '$' || std::isdigit(static_cast<unsigned char>(text_[at_ + 1])) != 0)
      return false;
    const std::string_view tag = text_.substr(at_, end + 1 - at_);
    at_ = end + 1;
    skip_to(tag);
    return true;
  }
  Token read_word(std::string& word) {
    word.clear();
    // A dollar inside a name does not begin a quote.
    while (at_ < text_.size() && (is_word(text_[at_]) || text_[at_] == '$')) word.push_back(upper(text_[at_++]));
    if (word == "E" && at_ < text_.size() && text_[at_] == '\'') return skip_quoted('\'', true), Token::other;
    return Token::word;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

// Body: finds the body of a function (PostgreSQL: CREATE FUNCTION … BEGIN ATOMIC …; END) or of a trigger (SQLite:
// CREATE TRIGGER … BEGIN …; END), in which a semicolon does not end the statement. A parameter or a column may have the
// name begin; after AS or a dot also case or end.
class Body {
 public:
  explicit Body(Dialect dialect) : dialect_(dialect) {}

  void see_word(const std::string& word) {
    if (seen_.size() < 4) seen_.push_back(word);
    const bool is_label = before_ == "AS" || before_ == ".";
    if (depth_ > 0 && !is_label)
      depth_ += word == "CASE" ? 1 : word == "END" ? -1 : 0;
    else if (depth_ == 0 && parentheses_ == 0 && opens(word))
      depth_ = 1;
    before_ = word;
  }
  void see_other(char first) {
    parentheses_ += first == '(' ? 1 : first == ')' ? -1 : 0;
    before_ = first;
  }
  bool is_open() const { return depth_ > 0; }

 private:
  bool opens(const std::string& word) const {
    if (seen_[0] != "CREATE") return false;
    if (dialect_ == Dialect::sqlite) return makes("TRIGGER") && word == "BEGIN";
    return (makes("FUNCTION") || makes("PROCEDURE")) && before_ == "BEGIN" && word == "ATOMIC";
  }
  bool makes(std::string_view what) const { return std::ranges::find(seen_, what) != seen_.end(); }

  Dialect dialect_;
  std::vector<std::string> seen_;
  std::string before_;  // the last word, or the first character of another token
  int parentheses_ = 0;
  int depth_ = 0;
};

bool has(const std::vector<std::string>& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

// A migration has no client that sends or receives the data of a COPY.
std::optional<std::string> find_copy_fault(const std::vector<std::string>& words) {
  const auto follows = [&](std::string_view first, std::string_view second) {
    return std::ranges::adjacent_find(words, [&](const auto& a, const auto& b) { return a == first && b == second; }) !=
           words.end();
  };
  if (follows("FROM", "STDIN")) return "`COPY … FROM STDIN` has no input here: use INSERT";
  if (follows("TO", "STDOUT")) return "`COPY … TO STDOUT` has no reader here: leave it out";
  return std::nullopt;
}

}  // namespace

std::vector<SqlStatement> split_sql(std::string_view script, Dialect dialect) {
  std::vector<SqlStatement> statements;
  Scanner scanner(script);
  Body body(dialect);
  std::optional<std::size_t> start;
  const auto finish = [&](std::size_t end) {
    if (start)
      statements.push_back({std::string(script.substr(*start, end - *start)),
                            1 + static_cast<int>(std::count(script.begin(), script.begin() + *start, '\n'))});
    start.reset();
    body = Body(dialect);
  };
  std::string word;
  for (;;) {
    const std::size_t from = scanner.at();
    const auto token = scanner.next(word);
    if (token == Scanner::Token::end) break;
    if (token == Scanner::Token::semicolon && !body.is_open()) finish(from);
    if (token == Scanner::Token::space || token == Scanner::Token::semicolon) continue;
    if (!start) start = from;
    if (token == Scanner::Token::word)
      body.see_word(word);
    else
      body.see_other(script[from]);
  }
  finish(script.size());
  return statements;
}

std::vector<std::string> first_words(std::string_view statement, std::size_t count) {
  std::vector<std::string> words;
  Scanner scanner(statement);
  std::string word;
  while (words.size() < count) {
    const auto token = scanner.next(word);
    if (token == Scanner::Token::end) break;
    if (token == Scanner::Token::word) words.push_back(word);
  }
  return words;
}

std::optional<std::string> find_untransactional(std::string_view statement) {
  if (statement.starts_with('\\')) return "`\\` commands are psql's; a migration is SQL alone";
  const auto words = first_words(statement, 8);
  if (words.empty()) return std::nullopt;
  const std::string& first = words[0];
  const std::string second = words.size() > 1 ? words[1] : "";
  const bool to_savepoint = first == "ROLLBACK" && has(words, "TO");
  if (has({"BEGIN", "COMMIT", "END", "ABORT"}, first) || (first == "ROLLBACK" && !to_savepoint) ||
      (first == "START" && second == "TRANSACTION") || (first == "PREPARE" && second == "TRANSACTION"))
    return "`" + first + "` would end the migration's own transaction: leave it out, each file is one already";
  const bool never = first == "VACUUM" || (has({"CREATE", "DROP"}, first) && has({"DATABASE", "TABLESPACE"}, second)) ||
                     (first == "ALTER" && second == "SYSTEM");
  const bool concurrently = has({"CREATE", "DROP", "REINDEX"}, first) && has(words, "CONCURRENTLY");
  if (never || concurrently)
    return "`" + first + " " + (concurrently ? "… CONCURRENTLY" : second) +
           "` cannot run in a transaction, and what cannot be undone is no migration: run it by hand";
  if (first == "COPY") return find_copy_fault(first_words(statement, statement.size()));
  return std::nullopt;
}

std::vector<Fault> lint_script(const std::string& file, std::string_view script, Dialect dialect) {
  std::vector<Fault> faults;
  for (const SqlStatement& statement : split_sql(script, dialect))
    if (auto why = find_untransactional(statement.text)) faults.push_back({file, statement.line, std::move(*why)});
  return faults;
}

std::vector<Fault> lint_for_any(const std::string& file, std::string_view script) {
  std::vector<Fault> faults = lint_script(file, script);
  const std::vector<Fault> others = lint_script(file, script, Dialect::sqlite);
  std::erase_if(faults, [&](const Fault& fault) { return std::ranges::find(others, fault) == others.end(); });
  return faults;
}

}  // namespace latchkey::migrate
