// SqliteTables: tables in an SQLite file, on the writer's connection. schema.sql has the layout, docs/adr the reasons.
//
// Its memory has only data that can be derived from the file: the key window, the ready index, a cache of open runs.
// commit() publishes changes of the memory, rollback() undoes them. Not safe from two threads.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <functional>
#include <map>

#include "base/random.hpp"
#include "store/ready_index.hpp"
#include "store/sqlite/database.hpp"
#include "store/sqlite/key_filter.hpp"
#include "store/sqlite/key_pages.hpp"
#include "store/sqlite/key_window.hpp"
#include "store/sqlite/run_rows.hpp"
#include "store/tables.hpp"

namespace latchkey {

struct StateRow {
  Seq seq = 0;
  std::int64_t fence = 0;
  Seq merged = 0;
  Seq listed = 0;
  std::int64_t batch = 0;
  Instant clock_mark;
  Seq purged = 0;
};

// The cached numbers of scopes. The writer's tables and the reader have one each.
class Scopes {
 public:
  explicit Scopes(Database& database);
  std::optional<std::int64_t> find(const std::string& tenant, const std::string& function);
  std::int64_t find_or_add(const std::string& tenant, const std::string& function);
  ScopeName name(std::int64_t scope);
  void clear();

 private:
  Database& database_;
  std::map<std::pair<std::string, std::string>, std::int64_t> numbers_;
  std::map<std::int64_t, ScopeName> names_;
};

// How many fresh runs start a merge, and how fast it runs beside the load. In a larger window more keys share a page;
// a smaller window takes less time to rebuild after a crash.
struct MergeSettings {
  std::size_t window = 128 * 1024;     // at least this many
  std::size_t window_max = 1'700'000;  // and at most this many, which fit into a hash table of 2 Mi slots
  std::size_t share = 4;               // in between: a quarter of the runs that are merged
  std::size_t slice_min = 256;
  // Sizes of the key index, which tests reduce.
  std::size_t page_keys = KeyPages::kEntriesMost;   // a page with more keys is split
  std::size_t filter_room = KeyFilter::kRoomLeast;  // the filter grows when it has more keys
  std::size_t pages_scanned = 32;                   // per commit, at least, while the filter is filled
};

class SqliteTables final : public Tables {
 public:
  SqliteTables(Database& database, Random& random, KeyWindow& window, MergeSettings merge);
  ~SqliteTables() override;

  // Reads lk_state and rebuilds the memory. Also after a reopen.
  void load();
  // A transaction: begin, changes, then commit or rollback. If commit() throws, the commit may be durable or not.
  void begin();
  void commit(Instant now);
  void rollback();
  // While set, every change throws before it does anything. Reads continue to work, for example on a full disk.
  void refuse_changes(std::optional<Code> why) { refused_ = why; }
  bool changed() const { return changed_; }
  // Merges all fresh keys in its own transactions. To be called before the store is closed.
  void merge_all(Instant now);

  // Executes other writes of Latchkey in the open transaction.
  std::monostate change(const std::function<void(Database&)>& write);
  std::optional<DeadLetter> acknowledge(const std::optional<std::string>& tenant, Uuid id, const std::string& actor,
                                        Instant now);
  // Executes the user's writes in a savepoint of the open transaction. If they throw, only the savepoint is rolled back
  // and the ending is a Fail. The user's statements cannot use Latchkey's tables or end the transaction.
  Ending in_savepoint(const std::function<Ending(sqlite3*)>& effect);

  const StateRow& state() const { return state_; }
  std::optional<Instant> next_deadline() const { return ready_index_.next_deadline(); }
  StoreStats count_open() const { return ready_index_.stats(); }

  std::optional<Run> find(RunId id) override;
  std::optional<Run> find_latest(const KeyName& name) override;
  RunId next_id(Instant now) override;
  Fence peek_fence() override { return static_cast<Fence>(state_.fence + 1); }
  void draw_fence() override { state_.fence += 1; }
  void insert(const Run& run) override;
  void update(const Run& before, const Run& after) override;
  void set_latest_run_of_key(const Run& run) override;
  void erase(const Run& run) override;
  std::vector<RunId> ready(const TakeRequest& request, Instant now) override {
    return ready_index_.ready(request, now);
  }
  std::vector<RunId> overdue(Instant now, std::uint32_t limit) override { return ready_index_.overdue(now, limit); }
  PurgeSlice purge_candidates(Instant made_by, std::uint32_t limit) override;
  bool has_waits() override { return any_waits_; }
  void add_wait(RunId predecessor, RunId dependent) override;
  void remove_wait(RunId predecessor, RunId dependent) override;
  void remove_waits_of(RunId dependent) override;
  std::vector<RunId> dependents(RunId predecessor) override;
  Uuid add_dead_letter(const Run& run) override;
  bool has_unacknowledged_dead_letter(RunId run) override;
  std::optional<Uuid> dead_letter_of(const Run& run) override;
  std::optional<DeadLetter> find_dead_letter(const std::optional<std::string>& tenant, Uuid id) override;
  std::vector<DeadLetterMember> list_members(Uuid dead_letter, MemberPosition after, std::uint32_t limit) override;
  std::optional<DeadLetterMember> find_member(Uuid dead_letter, RunId run) override;
  bool add_step(const DeadLetterMember& member, const MemberStep& step) override;
  void erase_members(RunId run) override;
  void add_duplicates(const DuplicateNote& note) override;

 private:
  struct Statements;
  // A change of the memory, to be undone by a rollback. The memory has open runs only.
  struct Change {
    Seq seq;
    std::optional<Run> before, after;
  };

  void will_change();
  std::optional<Run> read(Seq seq);
  void remember(const Run& run);
  void load_window();
  void load_open_runs();
  // Merges this many keys and runs. Starts a merge if `window_min` runs are not merged.
  void merge(std::size_t window_min, std::size_t amount);
  void finish(Instant now, std::size_t window_min, std::size_t amount);

  Database& database_;
  Random& random_;
  KeyWindow& window_;
  const MergeSettings merge_;
  std::unique_ptr<Statements> sql_;
  Scopes scopes_;
  KeyPages keys_;
  KeyFilter filter_;
  ReadyIndex ready_index_;
  absl::flat_hash_map<Seq, Run> open_runs_;
  StateRow state_;
  StateRow committed_;
  std::vector<Change> changes_;  // of the open transaction
  std::vector<std::pair<ShortHash, Seq>> erased_;
  std::size_t inserted_ = 0;  // runs in this transaction
  std::size_t slice_ = 0;     // entries of the window written in this transaction
  Seq merging_to_ = 0;        // `merged` once the frozen part of the window is written
  bool any_waits_ = false;
  bool changed_ = false;
  std::optional<Code> refused_;
};

}  // namespace latchkey
