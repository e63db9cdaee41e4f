#include "migrate/own_schema.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "migrate/pg_target.hpp"

namespace latchkey::migrate {
namespace {

SchemaReport inspect(PgTarget& target) {
  const auto& files = own_migrations().migrations;
  const auto has = target.has_schema("latchkey") ? HasSchema::yes : HasSchema::no;
  return judge(files, has == HasSchema::yes ? target.read_ledger() : std::vector<Applied>(), has);
}

void set_up(PgTarget& target, Duration patience) {
  require_faultless(target, own_migrations());
  target.begin(patience, [] {});
  // Another server may have set the database up during the lock wait.
  if (inspect(target).state == SchemaState::empty) {
    for (const Migration& one : own_migrations().migrations) apply_one(target, one);
    target.commit();
  }
  target.roll_back();
}

}  // namespace

SchemaReport judge(const std::vector<Migration>& migrations, const std::vector<Applied>& ledger, HasSchema has_schema) {
  if (has_schema == HasSchema::no) return {SchemaState::empty, "there is no schema `latchkey`"};
  if (ledger.empty())
    return {SchemaState::foreign, "there is a schema `latchkey`, but it has no migrations: it is not this Latchkey's"};
  const auto entries = survey(migrations, ledger);
  const std::int64_t ours = migrations.empty() ? 0 : migrations.back().version;
  const std::int64_t theirs = ledger.back().version;
  if (theirs > ours)
    return {
        SchemaState::newer,
        fmt::format("the schema is at {}, this version of Latchkey knows up to {}: use the newer one", theirs, ours)};
  if (std::ranges::any_of(entries, [](const Entry& entry) { return entry.state == MigrationState::pending; }))
    return {SchemaState::older, fmt::format("the schema is at {}, this version of Latchkey needs {}: run `latchkey "
                                            "migrate up`",
                                            theirs, ours)};
  if (const auto obstacle = find_obstacle(entries)) return {SchemaState::changed, obstacle->detail};
  return {SchemaState::current, fmt::format("the schema is at {}", theirs)};
}

std::optional<Error> find_refusal(const SchemaReport& report) {
  switch (report.state) {
    case SchemaState::empty:
    case SchemaState::current:
      return std::nullopt;
    case SchemaState::older:
      return Error{Code::SCHEMA_OLDER, report.detail};
    case SchemaState::newer:
      return Error{Code::SCHEMA_NEWER, report.detail};
    case SchemaState::changed:
      return Error{Code::MIGRATION_CHANGED, report.detail};
    case SchemaState::foreign:
      return Error{Code::STORE_FORMAT, report.detail};
  }
  return Error{Code::INTERNAL, "an unknown state of the schema"};
}

Result<SchemaReport> inspect_own_schema(const std::string& url, Random& random) {
  try {
    PgTarget target({.database = url, .ledger = Ledger::own}, random);
    return inspect(target);
  } catch (const MigrationError& stop) {
    return fail(stop.code, stop.what());
  }
}

Result<void> prepare_own_schema(const std::string& url, Random& random, Duration patience) {
  try {
    PgTarget target({.database = url, .ledger = Ledger::own}, random);
    SchemaReport report = inspect(target);
    if (report.state == SchemaState::empty) {
      set_up(target, patience);
      report = inspect(target);
    }
    if (auto refusal = find_refusal(report)) return std::unexpected(*refusal);
    return {};
  } catch (const MigrationError& stop) {
    return fail(stop.code, stop.what());
  }
}

}  // namespace latchkey::migrate
