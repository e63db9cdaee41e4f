// The output of `latchkey migrate`, as text and as JSON.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "migrate/new_migration.hpp"
#include "migrate/runner.hpp"

namespace latchkey {

enum class As { text, json };

void print_status(std::ostream& out, const std::vector<migrate::Entry>& entries, As as);
// Prints one line for a migration that was applied or taken back.
void print_done(std::ostream& out, const migrate::Migration& migration, const std::string& state, As as);
void print_plans(std::ostream& out, const migrate::Collection& files, As as);
void print_made(std::ostream& out, const migrate::NewMigration& made, As as);
// Prints the rollback plan that an operator reads before a migration is taken back.
void print_rollback(std::ostream& out, const migrate::Migration& migration);

}  // namespace latchkey
