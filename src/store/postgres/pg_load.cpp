// Loads the read set of a batch: reads and locks its rows in one round trip.
#include <ranges>

#include "base/seeded_bug.hpp"
#include "store/postgres/block_columns.hpp"
#include "store/postgres/dead_letter_columns.hpp"
#include "store/postgres/pg_store.hpp"
#include "store/postgres/statements.hpp"

namespace latchkey {

using namespace pg;

namespace {

// The expected size of a ready block. The first round of a take reads so many fewer blocks than jobs; if they are
// smaller, a second round reads more.
constexpr std::uint32_t kBlockGuess = 50;
// Thousands of counters that are drawn beyond those needed: other writers may draw some while this one waits for its
// reply, and a shortage costs another round trip.
constexpr std::int64_t kSpare = 8;
// At most so many filters of takes have a mark. Beyond that all marks are dropped.
constexpr std::size_t kMarksMax = 10'000;
// How often a take scans from the first ready job, and how far before the mark the other scans begin.
constexpr Duration kFullScanEvery = std::chrono::seconds{1}, kMarkSlack = std::chrono::milliseconds{200};

Column column_of(const auto& values, Type type) {
  Column column(type);
  for (const auto& value : values) column.add(value);
  return column;
}

// Runs as ranges of consecutive counters: runs that were enqueued together are mostly settled together.
struct Ranges {
  Column lo{Type::int8}, hi{Type::int8};
  explicit Ranges(const std::vector<Seq>& seqs) {
    for (auto at = seqs.begin(); at != seqs.end();) {
      const Seq first = *at;
      Seq last = first;
      while (++at != seqs.end() && *at == last + 1) last = *at;
      lo.add(first);
      hi.add(last);
    }
  }
  Params params() const { return Params().add(lo).add(hi); }
};

// A table that has jobs that may be taken.
struct ReadyTable {
  const char* name;
  const char* alias;
  const char* condition;
  const char* due;
};
constexpr ReadyTable kReadyBlocks{"latchkey.blocks", "b", "b.session IS NULL", "due"};
constexpr ReadyTable kReadyStates{"latchkey.states", "s", "s.status = 0 AND s.origin = 1 AND s.waiting_for = 0", "at"};

ReadyItem item_of(const Block& block) { return {block.priority, block.due_at, block.lo, block.hi}; }

}  // namespace

// One round trip: the statements to send, and a handler for each result.
class PostgresStore::Loader {
 public:
  enum class OnLocked : std::uint8_t { wait, skip };

  Loader(PostgresStore& store, Connection& connection, PgTables& tables, ReadSet read_set, OnLocked on_locked)
      : store_(store),
        connection_(connection),
        tables_(tables),
        read_set_(std::move(read_set)),
        skip_(LK_SEEDED(rows_not_locked) ? "" : " FOR UPDATE SKIP LOCKED"),
        lock_(on_locked == OnLocked::wait && *skip_ ? " FOR UPDATE" : skip_) {}

  void add(const Statement& statement, std::function<void(const Rows&)> handler) {
    connection_.add(statement);
    handlers_.push_back(std::move(handler));
  }
  void add(const Statement& statement) {
    add(statement, [](const Rows&) {});
  }

  void add_keys() {
    if (!read_set_.keys_snapshot.empty())
      add({sql().peek_keys, Params().add(column_of(read_set_.keys_snapshot.sorted(), Type::uuid))},
          [this](const Rows& rows) {
            for (const Uuid& key : read_set_.keys_snapshot.sorted()) tables_.load_no_key(key);
            for (int row = 0; row < rows.size(); ++row) tables_.load_peeked(rows.uuid(row, 0), read_run(rows, row, 1));
          });
    if (read_set_.keys_for_update.empty()) return;
    // The second query also finds keys that another transaction has locked.
    const Params keys = Params().add(column_of(read_set_.keys_for_update.sorted(), Type::uuid));
    add({sql().lock_keys, keys}, [this](const Rows& rows) {
      for (const Uuid& key : read_set_.keys_for_update.sorted()) tables_.load_locked_key(key, std::nullopt);
      for (int row = 0; row < rows.size(); ++row) tables_.load_locked_key(rows.uuid(row, 0), rows.integer(row, 1));
    });
    add({sql().find_keys, keys}, [this](const Rows& rows) {
      for (int row = 0; row < rows.size(); ++row) tables_.load_existing_key(rows.uuid(row, 0));
    });
  }

  // Reads blocks before states: a run moves only from a block to a row of its own.
  void add_runs(Wanted<Seq>& runs, const char* lock) {
    if (runs.empty()) return;
    const Ranges ranges(runs.sorted());
    add({sql().find_blocks + lock, ranges.params()}, [this](const Rows& rows) {
      for (int row = 0; row < rows.size(); ++row) tables_.load_block(read_block(rows, row));
    });
    add({sql().find_states + lock, ranges.params()}, [this](const Rows& rows) { load_rows(rows); });
    add({sql().find_outcomes, ranges.params()}, [this](const Rows& rows) {
      for (int row = 0; row < rows.size(); ++row) tables_.load_outcome(rows.integer(row, 0), read_outcome(rows, row));
    });
    read_set_.dependents.insert(runs);
    for (const Seq seq : runs.sorted())
      if (!tables_.pin_head(seq)) read_set_.heads.insert(seq);
  }

  void add_heads() {
    if (read_set_.heads.empty()) return;
    add({sql().find_heads, Ranges(read_set_.heads.sorted()).params()}, [this](const Rows& rows) {
      for (int row = 0; row < rows.size(); ++row) tables_.load_head(read_head(rows, row));
    });
  }

  void add_dependents() {
    if (read_set_.dependents.empty()) return;
    add({sql().find_dependents, Ranges(read_set_.dependents.sorted()).params()}, [this](const Rows& rows) {
      tables_.load_all_dependents(read_set_.dependents.sorted());
      for (int row = 0; row < rows.size(); ++row) tables_.load_dependent(rows.integer(row, 0), rows.uuid(row, 1));
    });
  }

  void add_dead_letters() {
    for (const DeadLetterGroup& group : read_set_.dead_letters) {
      const Params params = Params().add(std::string_view(group.first)).add(std::string_view(group.second));
      add({sql().find_open_dead_letter + lock_, params}, [this, group](const Rows& rows) {
        tables_.load_dead_letter(group, rows.empty() ? std::nullopt : std::optional(read_dead_letter(rows, 0)));
        if (!rows.empty()) store_.contended_dead_letters_.erase(group);
      });
      // This query also finds a locked one. A dead letter that is being inserted is known from an earlier lock timeout.
      add({sql().find_open_dead_letter_number, params}, [this, group](const Rows& rows) {
        if (!rows.empty() || store_.contended_dead_letters_.contains(group)) tables_.load_existing_dead_letter(group);
      });
    }
  }

  void add_ready(const ReadyFilter& filter, const ReadyRequest& request) {
    const std::uint32_t blocks = request.is_second_round ? request.count : 1 + request.count / kBlockGuess;
    auto items = std::make_shared<std::vector<ReadyItem>>();
    auto are_all = std::make_shared<bool>(true);
    const auto load_blocks = [this, items, are_all, blocks](const Rows& rows) {
      for (int row = 0; row < rows.size(); ++row) {
        Block block = read_block(rows, row);
        items->push_back(item_of(block));
        tables_.load_block(std::move(block));
      }
      *are_all &= rows.size() < static_cast<int>(blocks);
    };
    const auto load_states = [this, items](const Rows& rows) {
      load_rows(rows);
      for (int row = 0; row < rows.size(); ++row)
        items->push_back({.priority = static_cast<std::int32_t>(rows.integer(row, 1 + kStateColumnCount)),
                          .due_at = from_ms(rows.integer(row, 1 + kStateAtColumn)),
                          .lo = rows.integer(row, 0),
                          .hi = rows.integer(row, 0)});
    };
    // While overdue runs are deferred, a take leaves runs past their retry deadline to the sweep.
    const bool exclude_past_retry_deadline =
        request.exclude_past_retry_deadline || !store_.deferred_runs().runs.empty();
    const std::string not_expired = exclude_past_retry_deadline
                                        ? " AND (s.deadline IS NULL OR s.deadline > " + store_now("$3") + ")"
                                        : std::string();
    const std::string of_blocks = "SELECT " + sql().block_columns;
    const std::string of_states = "SELECT s.seq, " + sql().state_columns + ", s.priority";
    if (filter.tenant) {
      add(find_ready(filter, kReadyBlocks, of_blocks, "", "b.priority DESC, b.due, b.lo", blocks), load_blocks);
      add(find_ready(filter, kReadyStates, of_states, not_expired, "s.priority DESC, s.at, s.seq", request.count),
          load_states);
    } else {
      add(find_ready(filter, kReadyBlocks, of_blocks, " AND b.priority <> 0", "b.priority DESC, b.due, b.lo", blocks),
          load_blocks);
      add_ready_from_mark(filter, of_blocks, blocks, load_blocks);
      add(find_ready(filter, kReadyStates, of_states, " AND s.priority <> 0" + not_expired,
                     "s.priority DESC, s.at, s.seq", request.count),
          load_states);
      add(find_ready(filter, kReadyStates, of_states, " AND s.priority = 0" + not_expired, "s.at, s.seq",
                     request.count),
          load_states);
    }
    // The handler of the last query also stores the list.
    handlers_.back() = [this, filter, items, are_all, exclude_past_retry_deadline,
                        last = handlers_.back()](const Rows& rows) {
      last(rows);
      tables_.load_ready(filter, {std::move(*items), *are_all, exclude_past_retry_deadline});
    };
  }

  // Scans from the mark, because an old snapshot prevents vacuum, and a full scan would read the dead rows of all jobs
  // that were taken. A job that was committed late, with a due time before the mark, is found by the next full scan.
  void add_ready_from_mark(const ReadyFilter& filter, const std::string& columns, std::uint32_t limit,
                           std::function<void(const Rows&)> load) {
    if (store_.ready_marks_.size() >= kMarksMax) store_.ready_marks_.clear();
    ReadyMark& mark = store_.ready_marks_[filter];
    const Duration at = store_.host_.elapsed();
    const bool is_full_scan = !mark.from || at - mark.full_scan >= kFullScanEvery;
    if (is_full_scan) mark.full_scan = at;
    Statement find =
        find_ready(filter, kReadyBlocks, columns, " AND b.priority = 0 AND b.due >= $4", "b.due, b.lo", limit);
    find.params.add(is_full_scan ? 0 : to_ms(*mark.from - kMarkSlack));
    add(find, [this, filter, load, is_full_scan](const Rows& rows) {
      load(rows);
      ReadyMark& of = store_.ready_marks_[filter];
      if (!rows.empty()) {
        of.from = from_ms(rows.integer(0, kBlockDueColumn));
      } else if (is_full_scan) {
        of.from = store_.clock_.now();
      }
    });
  }

  // Reads each function's jobs in the order of an index, then sorts them and takes the first.
  Statement find_ready(const ReadyFilter& filter, const ReadyTable& table, const std::string& columns,
                       const std::string& which, const std::string& order, std::uint32_t limit) const {
    const std::string alias = table.alias;
    const std::string due = store_now("$3");
    // A set, because a caller may name a function twice.
    const std::set<std::string> functions(filter.functions.begin(), filter.functions.end());
    Params params = Params().add(column_of(functions, Type::text)).add(std::int64_t{limit}).add(own_now());
    if (filter.tenant) params.add(std::string_view(*filter.tenant));
    return {columns + " FROM unnest($1) AS f(name), LATERAL (SELECT * FROM " + table.name + " " + alias + " WHERE " +
                table.condition + " AND " + alias + ".function = f.name AND " + alias + "." + table.due + " <= " + due +
                (filter.tenant ? " AND " + alias + ".tenant = $4 AND " + alias + ".tenant <> ''" : "") + which +
                " ORDER BY " + order + " LIMIT $2 FOR UPDATE SKIP LOCKED) " + alias + " ORDER BY " + order +
                " LIMIT $2",
            std::move(params)};
  }

  void add_overdue() {
    if (read_set_.overdue == 0) return;
    const std::string now = store_now("$2");
    Params of_blocks = Params().add(std::int64_t{read_set_.overdue}).add(own_now()), of_states = of_blocks;
    // The conditions are added only if runs are deferred, so that the usual query has one text and one plan.
    const PgTables::DeferredRuns deferred = store_.deferred_runs();
    std::string except_blocks, except_states;
    if (!deferred.blocks.empty()) {
      except_blocks = " AND (b.lo, b.hi) NOT IN (SELECT u.lo, u.hi FROM unnest($3, $4) AS u(lo, hi))";
      of_blocks.add(column_of(deferred.blocks | std::views::keys, Type::int8));
      of_blocks.add(column_of(deferred.blocks | std::views::values, Type::int8));
    }
    if (!deferred.runs.empty()) {
      except_states = " AND s.seq NOT IN (SELECT u.seq FROM unnest($3) AS u(seq))";
      of_states.add(column_of(deferred.runs, Type::int8));
    }
    tables_.skip_overdue(deferred.runs);
    auto items = std::make_shared<std::vector<ReadyItem>>();
    add({"SELECT " + sql().block_columns + " FROM latchkey.blocks b WHERE b.session IS NOT NULL AND b.lease_until <= " +
             now + except_blocks + " ORDER BY b.lease_until LIMIT $1 FOR UPDATE SKIP LOCKED",
         of_blocks},
        [this, items](const Rows& rows) {
          for (int row = 0; row < rows.size(); ++row) {
            Block block = read_block(rows, row);
            items->push_back(item_of(block));
            tables_.load_block(std::move(block));
          }
        });
    add({"SELECT s.seq, " + sql().state_columns + " FROM latchkey.states s WHERE s.deadline <= " + now + except_states +
             " ORDER BY s.deadline LIMIT $1 FOR UPDATE SKIP LOCKED",
         of_states},
        [this, items](const Rows& rows) {
          for (const Seq seq : load_rows(rows)) items->push_back({.lo = seq, .hi = seq});
          tables_.load_overdue(std::move(*items));
        });
  }

  void add_counters() {
    const std::size_t left = store_.counters_.left();
    if (read_set_.counters <= left) return;
    add({sql().draw_counters,
         Params().add(static_cast<std::int64_t>((read_set_.counters - left + kDrawn - 1) / kDrawn) + kSpare)},
        [this](const Rows& rows) {
          for (int row = 0; row < rows.size(); ++row)
            store_.counters_.add(static_cast<std::uint64_t>(rows.integer(row, 0)));
        });
  }

  // Draws fences beyond the thousand that every round trip draws.
  void add_more_fences(const std::shared_ptr<Counters>& fences) {
    if (read_set_.fences <= kDrawn) return;
    add({sql().draw_fences, Params().add(static_cast<std::int64_t>((read_set_.fences - 1) / kDrawn))},
        [fences](const Rows& rows) {
          for (int row = 0; row < rows.size(); ++row) fences->add(static_cast<std::uint64_t>(rows.integer(row, 0)));
        });
  }

  // The lock order, which prevents deadlocks: keys (by hash), blocks (by first run), states (by run), open dead letters
  // (by tenant and function). The SQL functions use the same order (migrations/0006_rows.up.sql).
  //
  // Keys, ready and overdue rows, and all rows of later rounds are locked with SKIP LOCKED, so they never wait. Fences
  // are drawn after all locks, so that they are above those of the rows' last owners.
  Task<void> run(BatchExecution& execution, Instant& now) {
    for (Statement& write : tables_.take_writes()) add(write);
    add_keys();
    add_runs(read_set_.runs, lock_);
    add_runs(read_set_.runs_nowait, skip_);
    add_heads();
    add_dependents();
    add_dead_letters();
    for (const auto& [filter, request] : read_set_.ready) add_ready(filter, request);
    add_overdue();
    for (auto& [name, statement] : read_set_.queries) {
      add(statement);
      queries_.push_back(handlers_.size() - 1);
    }
    add_counters();
    const auto fences = std::make_shared<Counters>();
    add_more_fences(fences);
    const bool checks_identity = !connection_.uses_prepared_statements();
    add({checks_identity ? sql().end_load_and_identity : sql().end_load, {}},
        [&, checks_identity, fences](const Rows& rows) {
          if (checks_identity && !store_.identity_.is(rows.bytes(0, 5)))
            throw Failure("", "the pooler switched to another server", true);
          fences->add(static_cast<std::uint64_t>(rows.integer(0, 0)));
          tables_.load_fences(std::move(*fences));
          // A pooler may report its server's pid as its own; prepared statements would then be in other sessions.
          if (connection_.uses_prepared_statements() && !connection_.is_served_by(rows.integer(0, 2)))
            throw Failure("26000", "the pooler switched to another session", false);
          // The time is read in every round: a later round may read rows that were written after the first.
          execution.backend.emplace(rows.integer(0, 2), std::string(rows.bytes(0, 3)));
          store_.clock_.observe(from_ms(rows.integer(0, 1)), rows.integer(0, 4));
          now = store_.clock_.now();
        });
    auto results = co_await connection_.run(store_.settings_.reply_max);
    results.erase(results.begin(), results.end() - static_cast<std::ptrdiff_t>(handlers_.size()));  // BEGIN and SET
    for (std::size_t i = 0; i < results.size(); ++i) handlers_[i](results[i]);
    tables_.end_load(read_set_.runs.sorted());
    tables_.end_load_nowait(read_set_.runs_nowait.sorted());
    for (std::size_t i = 0; i < queries_.size(); ++i)
      tables_.load_result(read_set_.queries[i].first, std::move(results[queries_[i]]));
  }

 private:
  // SQL for the database's clock, or the store's own where that is later: it never goes back. `own`: its parameter.
  std::string store_now(const std::string& own) const {
    return store_.settings_.clock ? own : "(SELECT greatest(" + sql().clock + ", " + own + "))";
  }
  std::int64_t own_now() const { return to_ms(store_.clock_.now()); }

  std::vector<Seq> load_rows(const Rows& rows) {
    std::vector<Seq> seqs;
    for (int row = 0; row < rows.size(); ++row) {
      seqs.push_back(rows.integer(row, 0));
      Run run;
      read_state(rows, row, 1, run);
      tables_.load_row(seqs.back(), std::move(run));
    }
    return seqs;
  }

  PostgresStore& store_;
  Connection& connection_;
  PgTables& tables_;
  ReadSet read_set_;
  const char* const skip_;
  const char* const lock_;
  std::vector<std::function<void(const Rows&)>> handlers_;
  std::vector<std::size_t> queries_;
};

// Only the first round waits for row locks. Later rounds lock rows out of order, so waiting could deadlock.
Task<void> PostgresStore::load(Connection& connection, PgTables& tables, ReadSet read_set, bool first,
                               BatchExecution& execution, Instant& now) {
  Loader loader(*this, connection, tables, std::move(read_set),
                first && !execution.skips_locked ? Loader::OnLocked::wait : Loader::OnLocked::skip);
  co_await loader.run(execution, now);
}

}  // namespace latchkey
