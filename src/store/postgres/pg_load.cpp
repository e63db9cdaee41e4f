// One round trip of a batch: reads, and locks, all that its commands are known to need.
#include <ranges>

#include "base/seeded_bug.hpp"
#include "store/postgres/block_columns.hpp"
#include "store/postgres/letter_columns.hpp"
#include "store/postgres/pg_store.hpp"
#include "store/postgres/statements.hpp"

namespace latchkey {

using namespace pg;

namespace {

// Blocks that jobs are taken from are rarely smaller than this, where it matters: a first look at so many fewer.
constexpr std::uint32_t kBlockGuess = 50;
// Thousands of counters that are drawn beyond what is needed: other lanes take of them while this one waits for its
// own, and then it has to come again.
constexpr std::int64_t kSpare = 8;
// Lists of functions that are asked for; whoever asks for ever other ones begins anew.
constexpr std::size_t kMarksMost = 10'000;
// How often the jobs that are due are looked at from the very first, and how far back otherwise.
constexpr Duration kWholeEvery = std::chrono::seconds{1}, kMarkSlack = std::chrono::milliseconds{200};

Column column_of(const auto& values, Type type) {
  Column column(type);
  for (const auto& value : values) column.add(value);
  return column;
}

// Runs, as the ranges that they make up: those that were enqueued together are settled together.
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

// Where jobs that may be taken lie.
struct ReadyPlace {
  const char* table;
  const char* alias;
  const char* condition;
  const char* due;
};
constexpr ReadyPlace kReadyBlocks{"latchkey.blocks", "b", "b.session IS NULL", "due"};
constexpr ReadyPlace kReadyStates{"latchkey.states", "s", "s.status = 0 AND s.origin = 1 AND s.waiting_for = 0", "at"};

ReadyItem item_of(const Block& block) { return {block.priority, block.due_at, block.lo, block.hi}; }

}  // namespace

// What is done with each result of a round trip, in order.
class PostgresStore::Loading {
 public:
  Loading(PostgresStore& store, Connection& connection, PgTables& tables, ReadSet needs, bool waits)
      : store_(store),
        connection_(connection),
        tables_(tables),
        needs_(std::move(needs)),
        skip_(LK_SEEDED(rows_not_locked) ? "" : " FOR UPDATE SKIP LOCKED"),
        lock_(waits && *skip_ ? " FOR UPDATE" : skip_) {}

  void add(const Statement& statement, std::function<void(const Rows&)> handler) {
    connection_.add(statement);
    handlers_.push_back(std::move(handler));
  }
  void add(const Statement& statement) {
    add(statement, [](const Rows&) {});
  }

  void add_keys() {
    if (!needs_.keys_snapshot.empty())
      add({sql().peek_keys, Params().add(column_of(needs_.keys_snapshot.sorted(), Type::uuid))},
          [this](const Rows& rows) {
            for (const Uuid& key : needs_.keys_snapshot.sorted()) tables_.load_no_key(key);
            for (int row = 0; row < rows.size(); ++row) tables_.load_peeked(rows.uuid(row, 0), read_run(rows, row, 1));
          });
    if (needs_.keys_for_update.empty()) return;
    // Those that somebody else holds are found by the second.
    const Params keys = Params().add(column_of(needs_.keys_for_update.sorted(), Type::uuid));
    add({sql().hold_keys, keys}, [this](const Rows& rows) {
      for (const Uuid& key : needs_.keys_for_update.sorted()) tables_.load_held_key(key, std::nullopt);
      for (int row = 0; row < rows.size(); ++row) tables_.load_held_key(rows.uuid(row, 0), rows.integer(row, 1));
    });
    add({sql().find_keys, keys}, [this](const Rows& rows) {
      for (int row = 0; row < rows.size(); ++row) tables_.load_existing_key(rows.uuid(row, 0));
    });
  }

  // Blocks before rows of their own: a run goes from the one to the other only.
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
    needs_.waits.insert(runs);
    for (const Seq seq : runs.sorted())
      if (!tables_.pin_head(seq)) needs_.heads.insert(seq);
  }

  void add_heads() {
    if (needs_.heads.empty()) return;
    add({sql().find_heads, Ranges(needs_.heads.sorted()).params()}, [this](const Rows& rows) {
      for (int row = 0; row < rows.size(); ++row) tables_.load_head(read_head(rows, row));
    });
  }

  void add_waits() {
    if (needs_.waits.empty()) return;
    add({sql().find_waits, Ranges(needs_.waits.sorted()).params()}, [this](const Rows& rows) {
      tables_.load_waits(needs_.waits.sorted());
      for (int row = 0; row < rows.size(); ++row) tables_.load_wait(rows.integer(row, 0), rows.uuid(row, 1));
    });
  }

  void add_letters() {
    for (const LetterName& name : needs_.letters) {
      const Params params = Params().add(std::string_view(name.first)).add(std::string_view(name.second));
      add({sql().find_open_letter + lock_, params}, [this, name](const Rows& rows) {
        tables_.load_letter(name, rows.empty() ? std::nullopt : std::optional(read_letter(rows, 0)));
        if (!rows.empty()) store_.contended_dead_letters_.erase(name);
      });
      // One that somebody else holds is found by this only; one that somebody is making, by having met it.
      add({sql().find_open_number, params}, [this, name](const Rows& rows) {
        if (!rows.empty() || store_.contended_dead_letters_.contains(name)) tables_.load_existing_letter(name);
      });
    }
  }

  void add_ready(const ReadyName& name, const ReadyWish& wish) {
    const std::uint32_t blocks = wish.is_second ? wish.count : 1 + wish.count / kBlockGuess;
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
    // Where somebody is known to hold what they need, late ones are the sweep's.
    const bool exclude_past_retry_deadline = wish.exclude_past_retry_deadline || !store_.deferred_runs().runs.empty();
    const std::string timely = exclude_past_retry_deadline
                                   ? " AND (s.deadline IS NULL OR s.deadline > " + store_now("$3") + ")"
                                   : std::string();
    const std::string of_blocks = "SELECT " + sql().block_columns;
    const std::string of_states = "SELECT s.seq, " + sql().state_columns + ", s.priority";
    if (name.tenant) {
      add(find_ready(name, kReadyBlocks, of_blocks, "", "b.priority DESC, b.due, b.lo", blocks), load_blocks);
      add(find_ready(name, kReadyStates, of_states, timely, "s.priority DESC, s.at, s.seq", wish.count), load_states);
    } else {
      add(find_ready(name, kReadyBlocks, of_blocks, " AND b.priority <> 0", "b.priority DESC, b.due, b.lo", blocks),
          load_blocks);
      add_ready_from_mark(name, of_blocks, blocks, load_blocks);
      add(find_ready(name, kReadyStates, of_states, " AND s.priority <> 0" + timely, "s.priority DESC, s.at, s.seq",
                     wish.count),
          load_states);
      add(find_ready(name, kReadyStates, of_states, " AND s.priority = 0" + timely, "s.at, s.seq", wish.count),
          load_states);
    }
    // Behind the last of them.
    handlers_.back() = [this, name, items, are_all, exclude_past_retry_deadline,
                        last = handlers_.back()](const Rows& rows) {
      last(rows);
      tables_.load_ready(name, {std::move(*items), *are_all, exclude_past_retry_deadline});
    };
  }

  // Not from the beginning each time: while somebody holds an old snapshot, all that was ever taken is still there.
  // What was committed late, with a due time before the mark, is found when the whole is looked at.
  void add_ready_from_mark(const ReadyName& name, const std::string& columns, std::uint32_t limit,
                           std::function<void(const Rows&)> load) {
    if (store_.ready_marks_.size() >= kMarksMost) store_.ready_marks_.clear();
    ReadyMark& mark = store_.ready_marks_[name];
    const Duration at = store_.host_.elapsed();
    const bool is_whole = !mark.from || at - mark.looked >= kWholeEvery;
    if (is_whole) mark.looked = at;
    Statement find =
        find_ready(name, kReadyBlocks, columns, " AND b.priority = 0 AND b.due >= $4", "b.due, b.lo", limit);
    find.params.add(is_whole ? 0 : to_ms(*mark.from - kMarkSlack));
    add(find, [this, name, load, is_whole](const Rows& rows) {
      load(rows);
      ReadyMark& of = store_.ready_marks_[name];
      if (!rows.empty()) {
        of.from = from_ms(rows.integer(0, kBlockDueColumn));
      } else if (is_whole) {
        of.from = store_.clock_.now();
      }
    });
  }

  // Each function's by itself, in the order of an index, then the first of all.
  Statement find_ready(const ReadyName& name, const ReadyPlace& place, const std::string& columns,
                       const std::string& which, const std::string& order, std::uint32_t limit) const {
    const std::string alias = place.alias;
    const std::string due = store_now("$3");
    // One that is named twice is looked at once.
    const std::set<std::string> functions(name.functions.begin(), name.functions.end());
    Params params = Params().add(column_of(functions, Type::text)).add(std::int64_t{limit}).add(own_now());
    if (name.tenant) params.add(std::string_view(*name.tenant));
    return {columns + " FROM unnest($1) AS f(name), LATERAL (SELECT * FROM " + place.table + " " + alias + " WHERE " +
                place.condition + " AND " + alias + ".function = f.name AND " + alias + "." + place.due + " <= " + due +
                (name.tenant ? " AND " + alias + ".tenant = $4 AND " + alias + ".tenant <> ''" : "") + which +
                " ORDER BY " + order + " LIMIT $2 FOR UPDATE SKIP LOCKED) " + alias + " ORDER BY " + order +
                " LIMIT $2",
            std::move(params)};
  }

  void add_overdue() {
    if (needs_.overdue == 0) return;
    const std::string now = store_now("$2");
    Params of_blocks = Params().add(std::int64_t{needs_.overdue}).add(own_now()), of_states = of_blocks;
    // Only where there are such: what is usual is asked as it always was.
    const PgTables::DeferredRuns out = store_.deferred_runs();
    std::string but_blocks, but_states;
    if (!out.blocks.empty()) {
      but_blocks = " AND (b.lo, b.hi) NOT IN (SELECT u.lo, u.hi FROM unnest($3, $4) AS u(lo, hi))";
      of_blocks.add(column_of(out.blocks | std::views::keys, Type::int8));
      of_blocks.add(column_of(out.blocks | std::views::values, Type::int8));
    }
    if (!out.runs.empty()) {
      but_states = " AND s.seq NOT IN (SELECT u.seq FROM unnest($3) AS u(seq))";
      of_states.add(column_of(out.runs, Type::int8));
    }
    tables_.pass_over(out.runs);
    auto items = std::make_shared<std::vector<ReadyItem>>();
    add({"SELECT " + sql().block_columns + " FROM latchkey.blocks b WHERE b.session IS NOT NULL AND b.lease_until <= " +
             now + but_blocks + " ORDER BY b.lease_until LIMIT $1 FOR UPDATE SKIP LOCKED",
         of_blocks},
        [this, items](const Rows& rows) {
          for (int row = 0; row < rows.size(); ++row) {
            Block block = read_block(rows, row);
            items->push_back(item_of(block));
            tables_.load_block(std::move(block));
          }
        });
    add({"SELECT s.seq, " + sql().state_columns + " FROM latchkey.states s WHERE s.deadline <= " + now + but_states +
             " ORDER BY s.deadline LIMIT $1 FOR UPDATE SKIP LOCKED",
         of_states},
        [this, items](const Rows& rows) {
          for (const Seq seq : load_rows(rows)) items->push_back({.lo = seq, .hi = seq});
          tables_.load_overdue(std::move(*items));
        });
  }

  void add_counters() {
    const std::size_t left = store_.counters_.left();
    if (needs_.counters <= left) return;
    add({sql().draw_counters,
         Params().add(static_cast<std::int64_t>((needs_.counters - left + kDrawn - 1) / kDrawn) + kSpare)},
        [this](const Rows& rows) {
          for (int row = 0; row < rows.size(); ++row)
            store_.counters_.add(static_cast<std::uint64_t>(rows.integer(row, 0)));
        });
  }

  // Beyond the thousand that every look draws.
  void add_more_fences(const std::shared_ptr<Counters>& fences) {
    if (needs_.fences <= kDrawn) return;
    add({sql().draw_fences, Params().add(static_cast<std::int64_t>((needs_.fences - 1) / kDrawn))},
        [fences](const Rows& rows) {
          for (int row = 0; row < rows.size(); ++row) fences->add(static_cast<std::uint64_t>(rows.integer(row, 0)));
        });
  }

  // Everything, in the one order in which locks are taken. Fences come last: so that what is drawn is above what the
  // last owners of what is locked drew.
  Task<void> run(BatchExecution& execution, Instant& now) {
    for (Statement& write : tables_.take_writes()) add(write);
    add_keys();
    add_runs(needs_.runs, lock_);
    add_runs(needs_.runs_nowait, skip_);
    add_heads();
    add_waits();
    add_letters();
    for (const auto& [name, wish] : needs_.ready) add_ready(name, wish);
    add_overdue();
    for (auto& [name, question] : needs_.questions) {
      add(question);
      questions_.push_back(handlers_.size() - 1);
    }
    add_counters();
    const auto fences = std::make_shared<Counters>();
    add_more_fences(fences);
    const bool asks_identity = !connection_.uses_prepared_statements();
    add({asks_identity ? sql().end_load_and_identity : sql().end_load, {}},
        [&, asks_identity, fences](const Rows& rows) {
          if (asks_identity && !store_.identity_.is(rows.bytes(0, 5)))
            throw Failure("", "another server answers than the one that was connected to", true);
          fences->add(static_cast<std::uint64_t>(rows.integer(0, 0)));
          tables_.load_fences(std::move(*fences));
          // A pooler that shows its server's process as its own would have us use others' sessions.
          if (connection_.uses_prepared_statements() && !connection_.is_served_by(rows.integer(0, 2)))
            throw Failure("26000", "another session answers than the one that was connected to", false);
          // Anew each time: what a later round finds may have been written after the first.
          execution.backend.emplace(rows.integer(0, 2), std::string(rows.bytes(0, 3)));
          store_.clock_.observe(from_ms(rows.integer(0, 1)), rows.integer(0, 4));
          now = store_.clock_.now();
        });
    auto results = co_await connection_.run(store_.settings_.reply_max);
    results.erase(results.begin(), results.end() - static_cast<std::ptrdiff_t>(handlers_.size()));  // BEGIN and SET
    for (std::size_t i = 0; i < results.size(); ++i) handlers_[i](results[i]);
    tables_.end_load(needs_.runs.sorted());
    tables_.end_load_held(needs_.runs_nowait.sorted());
    for (std::size_t i = 0; i < questions_.size(); ++i)
      tables_.load_answer(needs_.questions[i].first, std::move(results[questions_[i]]));
  }

 private:
  // The database's clock, and never before the store's own, which is not set back with it. `own`: its parameter.
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
  ReadSet needs_;
  const char* const skip_;
  const char* const lock_;
  std::vector<std::function<void(const Rows&)>> handlers_;
  std::vector<std::size_t> questions_;
};

// Rows of the first round are waited for, in one order; those of later ones are not, or two batches could wait for each
// other.
Task<void> PostgresStore::load(Connection& connection, PgTables& tables, ReadSet needs, bool first,
                               BatchExecution& execution, Instant& now) {
  Loading loading(*this, connection, tables, std::move(needs), first && !execution.skips);
  co_await loading.run(execution, now);
}

}  // namespace latchkey
