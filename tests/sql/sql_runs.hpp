// Runs of the model as rows of the tables, and back: what a server would have written, without one.
#pragma once

#include "model/decide.hpp"
#include "sql/sql_fixture.hpp"

namespace latchkey {

// The columns of latchkey.states, as text, in their order.
std::vector<Value> state_columns(const Run& run);
// For a select: each of them from a value of that type, which `from` names.
std::string state_list(const std::string& from);
// A row in `runs` and one in `states`; guarded runs also hold their key.
void store_run(Sql& sql, const Run& run);
// The run's current state, from its own row, a block or an outcome. The key's hash is not read: the tables have half of
// it.
Run load_run(Sql& sql, RunId id);
std::optional<Run> find_latest(Sql& sql, const Digest& key_hash);

// The same run, with every instant later by `by`.
Run moved_in_time(const Run& run, Duration by);
// The database's clock.
Instant database_now(Sql& sql);

std::string as_hex(std::string_view bytes);  // as PostgreSQL writes bytea
std::string as_uuid(const Digest& hash);     // its first half

}  // namespace latchkey
