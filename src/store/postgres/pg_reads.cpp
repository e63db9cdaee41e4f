// Reads, each in a transaction on a connection of the read pool, with a time limit.
#include "store/listing.hpp"
#include "store/packing.hpp"
#include "store/postgres/dead_letter_columns.hpp"
#include "store/postgres/pg_list.hpp"
#include "store/postgres/pg_store.hpp"
#include "store/postgres/statements.hpp"

namespace latchkey {

using namespace pg;

template <class Read>
auto PostgresStore::read(Read read) -> Result<decltype(read(std::declval<ReadTransaction&>()))> {
  try {
    ReadTransaction reading(read_pool_);
    return read(reading);
  } catch (const Failure& failure) {
    return fail(Code::STORE_UNAVAILABLE, "the database could not be read");
  }
}

namespace {

std::optional<Run> first_of(const Rows& rows) { return rows.empty() ? std::nullopt : std::optional(read_run(rows, 0)); }

}  // namespace

Result<std::optional<Run>> PostgresStore::find(const std::optional<std::string>& tenant, RunId id) {
  return read([&](ReadTransaction& reading) {
    return first_of(reading.run(tenant, {sql().find_run, Params().add(seq_in(id)).add(id).add_or_null(tenant)}));
  });
}

Result<std::optional<Run>> PostgresStore::find_latest(const KeyName& name) {
  return read([&](ReadTransaction& reading) {
    auto run = first_of(reading.run(std::nullopt, {sql().find_latest, Params().add(name_key(name.hash))}));
    if (run && (run->head->key != name.key || run->head->tenant != name.tenant || run->head->function != name.function))
      run.reset();
    return run;
  });
}

Result<Page> PostgresStore::list(const ListQuery& query) {
  if (!is_cursor(query.cursor)) return std::unexpected(bad_cursor());
  return read([&](ReadTransaction& reading) {
    Page page;
    if (query.limit == 0) return page;
    const Rows rows = reading.run(
        query.tenant, {select_listed(query), page_params(query, static_cast<Seq>(read_cursor(query.cursor)))});
    const auto has_room = [&](int row) {
      return page.runs.size() < query.limit && rows.boolean(row, kHeadColumnCount + kStateColumnCount);
    };
    for (int row = 0; row < rows.size() && has_room(row); ++row) page.runs.push_back(read_run(rows, row));
    if (rows.size() > static_cast<int>(page.runs.size())) page.next = write_cursor(uuid_counter(page.runs.back().id()));
    return page;
  });
}

Result<std::optional<Duplicates>> PostgresStore::find_duplicates(RunId id) {
  return read([&](ReadTransaction& reading) -> std::optional<Duplicates> {
    const Rows rows = reading.run(std::nullopt, {sql().find_duplicates, Params().add(seq_in(id))});
    if (rows.empty()) return std::nullopt;
    return decode_duplicates(rows.bytes(0, 0));
  });
}

Result<StoreStats> PostgresStore::stats() {
  return read([](ReadTransaction& reading) {
    const Rows rows = reading.run(std::nullopt, {sql().stats, {}});
    StoreStats stats{.queued = static_cast<std::uint64_t>(rows.integer(0, 0)),
                     .running = static_cast<std::uint64_t>(rows.integer(0, 1)),
                     .in_doubt = static_cast<std::uint64_t>(rows.integer(0, 2)),
                     .unacknowledged_dead_letters = static_cast<std::uint64_t>(rows.integer(0, 4))};
    if (!rows.is_null(0, 3)) stats.doubt_since = from_ms(rows.integer(0, 3));
    return stats;
  });
}

Result<DeadLetterPage> PostgresStore::list_dead_letters(const DeadLetterQuery& query) {
  if (!is_cursor(query.cursor)) return std::unexpected(bad_cursor());
  return read([&](ReadTransaction& reading) {
    DeadLetterPage page;
    if (query.limit == 0) return page;
    const Rows rows =
        reading.run(query.tenant, {sql().list_dead_letters, Params()
                                                                .add(static_cast<Seq>(read_cursor(query.cursor)))
                                                                .add_or_null(query.tenant)
                                                                .add(std::string_view(query.function))
                                                                .add(query.with_acknowledged)
                                                                .add(query.limit + std::int64_t{1})});
    for (int row = 0; row < rows.size() && page.entries.size() < query.limit; ++row)
      page.entries.push_back(read_dead_letter(rows, row));
    if (rows.size() > static_cast<int>(query.limit)) page.next = write_cursor(uuid_counter(page.entries.back().id));
    return page;
  });
}

Result<std::optional<DeadLetter>> PostgresStore::find_dead_letter(const std::optional<std::string>& tenant, Uuid id) {
  return read([&](ReadTransaction& reading) -> std::optional<DeadLetter> {
    const Rows rows =
        reading.run(tenant, {sql().find_dead_letter, Params().add(seq_in(id)).add(id).add_or_null(tenant)});
    if (rows.empty()) return std::nullopt;
    return read_dead_letter(rows, 0);
  });
}

Result<std::vector<DeadLetterMember>> PostgresStore::list_members(Uuid dead_letter, std::uint32_t limit,
                                                                  MemberPosition after) {
  return read([&](ReadTransaction& reading) {
    const Rows rows = reading.run(std::nullopt, {sql().list_members, Params()
                                                                         .add(seq_in(dead_letter))
                                                                         .add(static_cast<std::int64_t>(after.counter))
                                                                         .add(std::int64_t{after.generation})
                                                                         .add(std::int64_t{limit})});
    std::vector<DeadLetterMember> members;
    for (int row = 0; row < rows.size(); ++row) {
      members.push_back(read_member(rows, row));
      if (!rows.boolean(row, 8)) continue;
      const Rows steps = reading.run(
          std::nullopt,
          {sql().list_steps, Params().add(seq_in(members.back().run)).add(std::int64_t{members.back().generation})});
      for (int step = 0; step < steps.size(); ++step)
        members.back().steps.push_back({.kind = static_cast<StepKind>(steps.integer(step, 0)),
                                        .by = std::string(steps.bytes(step, 1)),
                                        .at = from_ms(steps.integer(step, 2)),
                                        .note = std::string(steps.bytes(step, 3))});
    }
    return members;
  });
}

Result<std::vector<TokenRecord>> PostgresStore::list_tokens() {
  return read([&](ReadTransaction& reading) {
    const Rows rows = reading.run(std::nullopt, {sql().list_tokens, {}});
    std::vector<TokenRecord> tokens;
    for (int row = 0; row < rows.size(); ++row) tokens.push_back(read_token(rows, row));
    return tokens;
  });
}

}  // namespace latchkey
