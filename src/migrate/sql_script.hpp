// SQL as PostgreSQL reads it, split at the semicolons that end a statement: not those in quotes, dollar quotes,
// comments or the body of a function. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "migrate/migration_error.hpp"

namespace latchkey::migrate {

struct SqlStatement {
  std::string text;  // from its first word, without the semicolon
  int line = 1;      // of its first word
};

// The dialect decides where statements end: only SQLite has triggers with a body.
enum class Dialect { postgres, sqlite };

// Leaves out statements that have only comments.
std::vector<SqlStatement> split_sql(std::string_view script, Dialect dialect = Dialect::postgres);

// The statement's first words in capitals, comments left out.
std::vector<std::string> first_words(std::string_view statement, std::size_t count);

// The reason why the statement cannot be in a migration, which is one transaction with its row in the ledger.
std::optional<std::string> find_untransactional(std::string_view statement);

// Reports every such statement of a file.
std::vector<Fault> lint_script(const std::string& file, std::string_view script, Dialect dialect = Dialect::postgres);
// Reports only the statements that are wrong in both dialects.
std::vector<Fault> lint_for_any(const std::string& file, std::string_view script);

}  // namespace latchkey::migrate
