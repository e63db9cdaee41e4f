#include "store/sqlite/sqlite_tables.hpp"

#include <sqlite3.h>

#include <algorithm>

#include "base/assert.hpp"
#include "base/seeded_bug.hpp"

namespace latchkey {
namespace {

// The size of the cache of open runs; other runs are read from the file when they are needed.
constexpr std::size_t kOpenRunsCached = 100'000;
constexpr std::size_t kInputCached = 1024;
// Pages of the key index that one commit scans while the filter is filled.
constexpr std::size_t kPagesScannedMost = 512;

}  // namespace

struct SqliteTables::Statements {
  explicit Statements(Database& db)
      : begin(db.prepare(find_sql("begin"))),
        commit(db.prepare(find_sql("commit"))),
        write_state(db.prepare(find_sql("write_state"))),
        insert_run(db.prepare(find_sql("insert_run"))),
        put_state(db.prepare(find_sql("put_state"))),
        add_outcome(db.prepare(find_sql("add_outcome"))),
        put_outcome(db.prepare(find_sql("put_outcome"))),
        read_run(db.prepare(find_sql("read_run"))),
        add_open(db.prepare(find_sql("add_open"))),
        erase_open(db.prepare(find_sql("erase_open"))) {}

  Statement begin, commit, write_state, insert_run, put_state, add_outcome, put_outcome, read_run, add_open, erase_open;
};

SqliteTables::SqliteTables(Database& database, Random& random, KeyWindow& window, MergeSettings merge)
    : database_(database),
      random_(random),
      window_(window),
      merge_(merge),
      sql_(std::make_unique<Statements>(database)),
      scopes_(database),
      keys_(database, merge.page_keys),
      filter_(merge.filter_room) {}

SqliteTables::~SqliteTables() = default;

void SqliteTables::load() {
  ready_index_.clear();
  open_runs_.clear();
  scopes_.clear();
  changes_.clear();
  erased_.clear();
  slice_ = inserted_ = 0;
  merging_to_ = 0;

  Statement read_state = database_.prepare(find_sql("read_state"));
  LK_ASSERT(read_state.step());
  state_ = {.seq = read_state.integer(0),
            .fence = read_state.integer(1),
            .merged = read_state.integer(2),
            .listed = read_state.integer(3),
            .batch = read_state.integer(4),
            .clock_mark = from_ms(read_state.integer(5)),
            .purged = read_state.integer(6)};
  read_state.run();
  committed_ = state_;
  filter_.reset(static_cast<std::size_t>(state_.merged));
  load_window();
  load_open_runs();
  Statement any_waits = database_.prepare(find_sql("any_waits"));
  LK_ASSERT(any_waits.step());
  any_waits_ = any_waits.integer(0) != 0;
}

void SqliteTables::load_window() {
  window_.clear();
  const auto short_hash = [](std::string_view bytes) {
    ShortHash hash;
    LK_ASSERT(bytes.size() >= hash.bytes.size());
    std::memcpy(hash.bytes.data(), bytes.data(), hash.bytes.size());
    return hash;
  };
  Statement unmerged = database_.prepare(find_sql("unmerged_keys"));
  unmerged.bind(1, state_.merged);
  window_.reserve(static_cast<std::size_t>(state_.seq - state_.merged));
  for (std::size_t staged = 1; unmerged.step(); ++staged) {
    window_.stage(short_hash(unmerged.bytes(1)), unmerged.integer(0));
    // Many small maps that fit into the processor's cache are faster than one large map.
    if (staged % 4096 == 0) window_.publish();
  }
  Statement pointed = database_.prepare(find_sql("read_pointed"));
  while (pointed.step()) {
    const ShortHash hash = short_hash(pointed.bytes(0));
    if (window_.find_staged(hash).value_or(0) <= pointed.integer(2)) window_.stage(hash, pointed.integer(1));
  }
  window_.publish();
}

void SqliteTables::load_open_runs() {
  Statement all_open = database_.prepare(find_sql("all_open"));
  all_open.bind(1, state_.listed);
  while (all_open.step()) {
    const auto run = read(all_open.integer(0));
    LK_ASSERT(run && run->is_open());
    ready_index_.add(*run);
    remember(*run);
  }
}

void SqliteTables::begin() {
  sql_->begin.run();
  changed_ = false;
}

void SqliteTables::commit(Instant now) {
  // Merges a little faster than the keys arrive: a merge ends when the next one is about due, and every commit has
  // about the same cost.
  const auto window = std::clamp(static_cast<std::size_t>(state_.merged) / merge_.share, merge_.window,
                                 std::max(merge_.window, merge_.window_max));
  finish(now, window, std::max(merge_.slice_min, inserted_ + inserted_ / 4));
}

void SqliteTables::finish(Instant now, std::size_t window_min, std::size_t amount) {
  if (changed_) {
    merge(window_min, amount);
    // The scan is faster under load: until the filter is filled, every new key is looked up in the file.
    filter_.scan(keys_, std::clamp(amount / 4, merge_.pages_scanned, kPagesScannedMost));
    state_.batch += 1;
    state_.clock_mark = now;
    sql_->write_state.bind(1, state_.seq)
        .bind(2, state_.fence)
        .bind(3, state_.merged)
        .bind(4, state_.listed)
        .bind(5, state_.batch)
        .bind(6, to_ms(state_.clock_mark))
        .bind(7, state_.purged)
        .run();
  }
  sql_->commit.run();
  filter_.commit_scan();
  committed_ = state_;
  changes_.clear();
  window_.publish();
  for (const auto& [hash, seq] : erased_) window_.erase(hash, seq);
  erased_.clear();
  if (slice_ > 0) window_.take_slice(slice_);
  slice_ = inserted_ = 0;
}

void SqliteTables::rollback() {
  // After some errors SQLite has already rolled back.
  sqlite3_exec(database_.handle(), "ROLLBACK", nullptr, nullptr, nullptr);
  if (LK_SEEDED(rollback_skips_the_index)) changes_.clear();
  for (auto change = changes_.rbegin(); change != changes_.rend(); ++change) {
    open_runs_.erase(change->seq);
    if (change->after) ready_index_.remove(*change->after);
    if (change->before) ready_index_.add(*change->before);
  }
  changes_.clear();
  erased_.clear();
  window_.discard();
  filter_.forget_scan();
  scopes_.clear();
  slice_ = inserted_ = 0;
  state_ = committed_;
}

void SqliteTables::will_change() {
  if (refused_) throw TablesError(*refused_, "the store takes no changes at the moment");
  changed_ = true;
}

std::optional<Run> SqliteTables::read(Seq seq) {
  if (const auto known = open_runs_.find(seq); known != open_runs_.end()) return known->second;
  const Rows rows(sql_->read_run.bind(1, seq));
  if (!sql_->read_run.step()) return std::nullopt;
  return read_row(sql_->read_run, scopes_.name(row_scope(sql_->read_run)));
}

void SqliteTables::remember(const Run& run) {
  if (run.is_open() && open_runs_.size() < kOpenRunsCached && run.head->input.size() <= kInputCached) {
    open_runs_.insert_or_assign(seq_of(run.id()), run);
  } else {
    open_runs_.erase(seq_of(run.id()));
  }
}

std::optional<Run> SqliteTables::find(RunId id) {
  auto run = read(seq_of(id));
  if (run && run->id() != id) run.reset();
  return run;
}

std::optional<Run> SqliteTables::find_latest(const KeyName& name) {
  const ShortHash hash(name.hash);
  std::optional<Seq> seq = window_.find_staged(hash);
  if (!seq) {
    if (filter_.may_have(hash)) seq = keys_.find(hash);
    if (!seq) return std::nullopt;
  }
  auto run = read(*seq);
  if (!run) return std::nullopt;
  const RunHead& head = *run->head;
  LK_ASSERT((head.by_call || head.key == name.key) && head.tenant == name.tenant && head.function == name.function);
  return run;
}

RunId SqliteTables::next_id(Instant now) {
  state_.seq += 1;
  return make_uuid_v7(now, static_cast<std::uint64_t>(state_.seq), random_.next());
}

void SqliteTables::insert(const Run& run) {
  will_change();
  bind_insert(sql_->insert_run, run, scopes_.find_or_add(run.head->tenant, run.head->function));
  sql_->insert_run.run();
  // The memory changes only after the write has succeeded.
  changes_.push_back({seq_of(run.id()), {}, run});
  inserted_ += 1;
  if (run.head->guarded()) window_.stage(ShortHash(run.head->key_hash), seq_of(run.id()));
  ready_index_.add(run);
  remember(run);
}

void SqliteTables::update(const Run& before, const Run& after) {
  will_change();
  const Seq seq = seq_of(after.id());
  if (after.is_open()) {
    bind_state(sql_->put_state, after);
    sql_->put_state.run();
  } else {
    // A replace costs a statement journal, and a first outcome replaces no row.
    const bool first = before.is_open() && after.generation == 1;
    Statement& put = first ? sql_->add_outcome : sql_->put_outcome;
    bind_outcome(put, after);
    put.run();
  }
  // Runs above the mark are not in lk_open yet: the merge adds them if they are still open.
  if (seq <= state_.listed && before.is_open() != after.is_open()) {
    Statement& index = after.is_open() ? sql_->add_open : sql_->erase_open;
    index.bind(1, seq).run();
  }
  changes_.push_back({seq, {}, {}});
  if (before.is_open()) changes_.back().before = before;
  if (after.is_open()) changes_.back().after = after;
  ready_index_.remove(before);
  ready_index_.add(after);
  remember(after);
}

void SqliteTables::set_latest_run_of_key(const Run& run) {
  will_change();
  const ShortHash hash(run.head->key_hash);
  database_.prepare(find_sql("set_latest_run_of_key"))
      .bind_blob(1, std::span<const unsigned char>(hash.bytes))
      .bind(2, seq_of(run.id()))
      .bind(3, state_.seq)
      .run();
  window_.stage(hash, seq_of(run.id()));
}

void SqliteTables::erase(const Run& run) {
  will_change();
  const Seq seq = seq_of(run.id());
  const auto scope = scopes_.find(run.head->tenant, run.head->function);
  LK_ASSERT(scope);
  database_.prepare(find_sql("erase_run")).bind(1, seq).run();
  database_.prepare(find_sql("erase_state")).bind(1, seq).run();
  database_.prepare(find_sql("erase_outcome")).bind(1, seq).run();
  database_.prepare(find_sql("erase_listed")).bind(1, *scope).bind(2, seq).run();
  database_.prepare(find_sql("erase_duplicates")).bind(1, seq).run();
  if (run.head->guarded()) {
    const ShortHash hash(run.head->key_hash);
    keys_.erase(hash, seq);
    database_.prepare(find_sql("erase_pointer"))
        .bind_blob(1, std::span<const unsigned char>(hash.bytes))
        .bind(2, seq)
        .run();
    erased_.emplace_back(hash, seq);
  }
}

PurgeSlice SqliteTables::purge_candidates(Instant made_by, std::uint32_t limit) {
  std::vector<Seq> seqs;
  Statement scan = database_.prepare(find_sql("purge_candidates"));
  scan.bind(1, state_.purged).bind(2, limit);
  while (scan.step() && from_ms(scan.integer(1)) <= made_by) seqs.push_back(scan.integer(0));
  PurgeSlice slice;
  slice.more = limit > 0 && seqs.size() == limit;
  // Stored in the file: a process that opens the store for one slice only would otherwise always start at the same
  // runs.
  if (const Seq mark = slice.more ? seqs.back() : 0; mark != state_.purged) {
    will_change();
    state_.purged = mark;
  }
  for (const Seq seq : seqs)
    if (auto run = read(seq); run && run->is_settled()) slice.runs.push_back(std::move(*run));
  return slice;
}

}  // namespace latchkey
