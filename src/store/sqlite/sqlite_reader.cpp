#include "store/sqlite/sqlite_reader.hpp"

#include <sqlite3.h>

#include <algorithm>

#include "base/assert.hpp"
#include "store/listing.hpp"
#include "store/packing.hpp"
#include "store/sqlite/dead_letter_rows.hpp"

namespace latchkey {
namespace {

// The number of rows that one page may read.
constexpr std::size_t kRowsReadMax = 50'000;

}  // namespace

SqliteReader::SqliteReader(const std::string& file, const char* vfs, const KeyWindow& window)
    : database_(file, vfs, Access::read),
      window_(window),
      scopes_(database_),
      read_run_(database_.prepare(find_sql("read_run"))),
      read_bare_(database_.prepare(find_sql("read_run_bare"))),
      keys_(database_) {
  database_.execute("PRAGMA busy_timeout = 5000; PRAGMA cache_size = -16384");
}

std::optional<Run> SqliteReader::read(Seq seq, Statement& statement) {
  const Rows rows(statement.bind(1, seq));
  if (!statement.step()) return std::nullopt;
  return read_row(statement, scopes_.name(row_scope(statement)));
}

std::optional<Run> SqliteReader::find(const std::optional<std::string>& tenant, RunId id) {
  const std::lock_guard lock(mutex_);
  auto run = read(seq_of(id), read_run_);
  if (run && (run->id() != id || (tenant && run->head->tenant != *tenant))) run.reset();
  return run;
}

std::optional<Run> SqliteReader::find_latest(const KeyName& name) {
  const ShortHash hash(name.hash);
  std::optional<Seq> seq = window_.find(hash);
  const std::lock_guard lock(mutex_);
  if (!seq) {
    seq = keys_.find(hash);
    if (!seq) return std::nullopt;
  }
  auto run = read(*seq, read_run_);
  if (run && (run->head->key != name.key || run->head->tenant != name.tenant || run->head->function != name.function))
    run.reset();
  return run;
}

std::optional<Duplicates> SqliteReader::find_duplicates(RunId id) {
  const std::lock_guard lock(mutex_);
  Statement query = database_.prepare(find_sql("read_duplicates"));
  query.bind(1, seq_of(id));
  if (!query.step()) return std::nullopt;
  return decode_duplicates(query.bytes(0));
}

std::vector<Seq> SqliteReader::all(Statement& statement) {
  std::vector<Seq> seqs;
  while (statement.step()) seqs.push_back(statement.integer(0));
  return seqs;
}

Seq SqliteReader::listed_mark() {
  Statement state = database_.prepare(find_sql("read_state"));
  LK_ASSERT(state.step());
  return state.integer(3);
}

std::vector<Seq> SqliteReader::candidates_of(std::int64_t scope, Seq before, std::uint32_t limit, Seq listed) {
  Statement recent = database_.prepare(find_sql("list_scope_recent"));
  recent.bind(1, listed).bind(2, before).bind(3, scope).bind(4, limit);
  std::vector<Seq> seqs = all(recent);
  if (seqs.size() >= limit) return seqs;
  Statement older = database_.prepare(find_sql("list_scope"));
  older.bind(1, scope).bind(2, std::min(before, listed + 1)).bind(3, static_cast<std::int64_t>(limit - seqs.size()));
  for (const Seq seq : all(older)) seqs.push_back(seq);
  return seqs;
}

std::vector<Seq> SqliteReader::candidates(const ListQuery& query, Seq before, std::uint32_t limit) {
  const Seq listed = listed_mark();
  if (query.status && *query.status <= Status::in_doubt) {
    Statement open = database_.prepare(find_sql("list_open"));
    open.bind(1, listed).bind(2, before).bind(3, limit);
    return all(open);
  }
  if (query.status && *query.status != Status::completed) {
    Statement unusual = database_.prepare(find_sql("list_unusual"));
    unusual.bind(1, static_cast<int>(*query.status)).bind(2, before).bind(3, limit);
    return all(unusual);
  }
  if (!query.tenant && query.function.empty()) {
    Statement any = database_.prepare(find_sql("list_all"));
    any.bind(1, before).bind(2, limit);
    return all(any);
  }
  Statement scopes = database_.prepare(find_sql("list_scopes"));
  if (query.tenant) scopes.bind_text(1, *query.tenant);
  scopes.bind_text(2, query.function);
  std::vector<Seq> seqs;
  for (const std::int64_t scope : all(scopes))
    for (const Seq seq : candidates_of(scope, before, limit, listed)) seqs.push_back(seq);
  std::ranges::sort(seqs, std::greater{});
  if (seqs.size() > limit) seqs.resize(limit);
  return seqs;
}

Page SqliteReader::list(const ListQuery& query) {
  const std::lock_guard lock(mutex_);
  database_.execute("BEGIN");
  const struct End {
    Database& database;
    // An I/O error may have ended the transaction already.
    ~End() { sqlite3_exec(database.handle(), "ROLLBACK", nullptr, nullptr, nullptr); }
  } end{database_};
  Page page;
  if (query.limit == 0) return page;
  auto before = static_cast<Seq>(read_cursor(query.cursor));
  std::size_t bytes = 0;
  // Reads one run more than fits on the page, to find out whether there is a next page.
  const std::uint32_t step = std::max<std::uint32_t>(query.limit + 1, 100);
  for (std::size_t looked = 0; looked < kRowsReadMax; looked += step) {
    const auto seqs = candidates(query, before, step);
    for (const Seq seq : seqs) {
      before = seq;
      auto run = read(seq, read_bare_);
      if (!run || !is_listed(*run, query)) {
        if (run && query.since && run->head->created_at < *query.since) return page;
        continue;
      }
      if (is_full(page, bytes, query)) {
        page.next = write_cursor(uuid_counter(page.runs.back().id()));
        return page;
      }
      if (query.with_payloads) run = read(seq, read_run_);
      bytes += payload_bytes(*run);
      page.runs.push_back(std::move(*run));
    }
    if (seqs.size() < step) return page;
  }
  // A page may be short, even empty, and have a next page: a rare filter must not occupy the reader for minutes.
  page.next = write_cursor(static_cast<std::uint64_t>(before));
  return page;
}

DeadLetterPage SqliteReader::list_dead_letters(const DeadLetterQuery& query) {
  const std::lock_guard lock(mutex_);
  Statement rows = database_.prepare(find_sql("list_dead_letters"));
  rows.bind(1, static_cast<std::int64_t>(read_cursor(query.cursor)))
      .bind_text(3, query.function)
      .bind(4, query.with_acknowledged ? 1 : 0)
      .bind(5, query.limit + std::int64_t{1});
  if (query.tenant) rows.bind_text(2, *query.tenant);
  DeadLetterPage page;
  if (query.limit == 0) return page;
  while (rows.step()) {
    if (page.entries.size() == query.limit) {
      page.next = write_cursor(uuid_counter(page.entries.back().id));
      break;
    }
    page.entries.push_back(read_dead_letter(rows));
  }
  return page;
}

std::optional<DeadLetter> SqliteReader::find_dead_letter(const std::optional<std::string>& tenant, Uuid id) {
  const std::lock_guard lock(mutex_);
  Statement row = database_.prepare(find_sql("read_dead_letter"));
  row.bind(1, seq_of(id));
  if (!row.step()) return std::nullopt;
  DeadLetter dead_letter = read_dead_letter(row);
  if (dead_letter.id != id || (tenant && dead_letter.tenant != *tenant)) return std::nullopt;
  return dead_letter;
}

std::uint64_t SqliteReader::count_unacknowledged_dead_letters() {
  const std::lock_guard lock(mutex_);
  Statement count = database_.prepare(find_sql("count_unacknowledged_dead_letters"));
  LK_ASSERT(count.step());
  return static_cast<std::uint64_t>(count.integer(0));
}

std::vector<DeadLetterMember> SqliteReader::list_members(Uuid dead_letter, std::uint32_t limit, MemberPosition after) {
  const std::lock_guard lock(mutex_);
  std::vector<DeadLetterMember> members = read_members(database_, dead_letter, after, limit);
  Statement steps = database_.prepare(find_sql("list_steps"));
  for (DeadLetterMember& member : members) {
    steps.reset();
    steps.bind(1, seq_of(member.run)).bind(2, member.generation);
    while (steps.step()) member.steps.push_back(read_step(steps));
  }
  return members;
}

}  // namespace latchkey
