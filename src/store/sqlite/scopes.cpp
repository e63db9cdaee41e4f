#include "base/assert.hpp"
#include "store/sqlite/sqlite_tables.hpp"

namespace latchkey {

Scopes::Scopes(Database& database) : database_(database) {}

std::optional<std::int64_t> Scopes::find(const std::string& tenant, const std::string& function) {
  const auto known = numbers_.find({tenant, function});
  if (known != numbers_.end()) return known->second;
  Statement query = database_.prepare(find_sql("find_scope"));
  query.bind_text(1, tenant).bind_text(2, function);
  if (!query.step()) return std::nullopt;
  return numbers_[{tenant, function}] = query.integer(0);
}

std::int64_t Scopes::find_or_add(const std::string& tenant, const std::string& function) {
  if (const auto known = find(tenant, function)) return *known;
  Statement add = database_.prepare(find_sql("add_scope"));
  add.bind_text(1, tenant).bind_text(2, function);
  LK_ASSERT(add.step());
  const std::int64_t scope = add.integer(0);
  add.run();
  return numbers_[{tenant, function}] = scope;
}

ScopeName Scopes::name(std::int64_t scope) {
  if (const auto known = names_.find(scope); known != names_.end()) return known->second;
  Statement query = database_.prepare(find_sql("read_scope"));
  query.bind(1, scope);
  LK_ASSERT(query.step());
  return names_[scope] = {std::string(query.bytes(0)), std::string(query.bytes(1))};
}

void Scopes::clear() {
  numbers_.clear();
  names_.clear();
}

}  // namespace latchkey
