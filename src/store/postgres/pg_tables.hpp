// PgTables: the rows that one transaction on PostgreSQL has read, and the writes that it will send. store/apply.cpp
// uses it as any Tables; it runs no query itself.
//
// A command that needs a row that was not read adds it to the read set and throws NeedsRead. The command is undone, the
// rows of all such commands are read and locked in one round trip, and the command is applied again. Writes are
// collected until take_writes() returns one statement per table and kind.
//
// Rare data (members of dead letters, their steps, counts of duplicates) is not cached here. It is read with query()
// and written with write(), in the order of the calls.
#pragma once

#include <functional>
#include <map>
#include <memory_resource>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>

#include "base/random.hpp"
#include "store/postgres/contended_keys.hpp"
#include "store/postgres/head_cache.hpp"
#include "store/postgres/run_columns.hpp"
#include "store/postgres/wanted.hpp"
#include "store/tables.hpp"

namespace latchkey::pg {

// Thrown if a row was not read yet.
struct NeedsRead {};
// Thrown if another transaction has locked a row, or has just moved it: the command is parked and retried.
struct LockContended {};
// Thrown if a run that is open has a settlement: the database is inconsistent, and a retry cannot succeed.
struct StateConflict : LockContended {};
// The reply to a command that was parked for too long.
inline Error lock_contended_error() {
  return {Code::STORE_UNAVAILABLE, "row is locked by another transaction; nothing was changed; retry"};
}

using DeadLetterGroup = std::pair<std::string, std::string>;  // tenant, function

// The jobs that a take may return.
struct ReadyFilter {
  std::optional<std::string> tenant;
  std::vector<std::string> functions;
  auto operator<=>(const ReadyFilter&) const = default;
};
// A block, or a run with a row of its own, that may be taken.
struct ReadyItem {
  std::int32_t priority = 0;
  Instant due_at;
  Seq lo = 0, hi = 0;
};

struct ReadyRequest {
  std::uint32_t count = 0;                   // jobs
  bool is_second_round = false;              // the first round found too few
  bool exclude_past_retry_deadline = false;  // another transaction has locked rows that are needed to end those
};
struct ReadyList {
  std::vector<ReadyItem> items;
  bool are_all = false;
  bool exclude_past_retry_deadline = false;
};

// The rows to read, and to lock, in the next round trip.
struct ReadSet {
  Wanted<Seq> runs;               // locked; the batch waits for them
  Wanted<Seq> runs_nowait;        // locked unless another transaction has locked them
  Wanted<Seq> heads;              // of locked runs
  Wanted<Uuid> keys_snapshot;     // not locked
  Wanted<Uuid> keys_assumed_new;  // not read unless a recent batch found such keys; not locked
  Wanted<Uuid> keys_for_update;   // locked
  Wanted<Seq> dependents;         // of these runs
  std::set<DeadLetterGroup> dead_letters;
  std::map<ReadyFilter, ReadyRequest> ready;
  std::uint32_t overdue = 0;  // at most so many
  std::vector<std::pair<std::string, Statement>> queries;
  std::uint32_t counters = 0;
  std::uint64_t fences = 0;
};

// Numbers of a sequence that were reserved by the thousand: counters of new ids, which all batches share, or fences.
class Counters {
 public:
  std::optional<std::uint64_t> peek() const;
  std::optional<std::uint64_t> next();
  std::size_t left() const;
  void add(std::uint64_t first);
  // Returns the number that was drawn last.
  void put_back(std::uint64_t drawn);
  void forget() { ranges_.clear(); }

 private:
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges_;  // next, end
};
inline constexpr std::uint64_t kDrawn = 1000;

class PgTables final : public Tables {
 public:
  PgTables(Random& random, Counters& counters, HeadCache& heads)
      : random_(random), counters_(counters), heads_(heads) {}

  // --- the batch ----------------------------------------------------------------------------------------------------
  ReadSet take_read_set() { return std::exchange(read_set_, {}); }
  // Statements for all writes since the last call. The insert of a key or dead letter that exists fails.
  std::vector<Statement> take_writes();
  bool has_changed() const { return changed_; }
  // Called before each command.
  void begin_command() {
    undo_.clear();
    undo_runs_.clear();
    written_before_ = !own_writes_.empty();
    blocks_on_row_locks_ = false;
    needs_read_ = false;
    has_unprobed_key_ = false;
    read_own_writes_ = has_written_;
    fences_drawn_ = 0;
    changed_before_ = begin_request().changed;
  }
  // A row was missing. The command continues, so that the rows that its other requests miss are read with it.
  void request_another_round() { needs_read_ = true; }
  // Throws NeedsRead if a row was missing, LockContended if a key must be probed first.
  void end_command() const {
    if (needs_read_) throw NeedsRead{};
    end_request();
  }
  // Whether this command changed nothing and read no uncommitted data: its reply is valid before the commit.
  bool is_read_only() const { return !read_own_writes_ && undo_.empty() && undo_runs_.empty(); }
  // The state to which one request of several is undone.
  struct Savepoint {
    std::size_t steps, runs;
    bool changed;
  };
  Savepoint begin_request() {
    peeked_keys_.clear();
    return {undo_.size(), undo_runs_.size(), changed_};
  }
  void end_request() const {
    if (has_unprobed_key_) throw LockContended{};
  }
  void undo_request(Savepoint savepoint) {
    undo_to(savepoint.steps, savepoint.runs);
    changed_ = savepoint.changed;
    has_unprobed_key_ = false;
  }
  void undo_command();
  // Updates the head cache after the commit: adds inserted runs, removes settled and erased ones.
  void update_head_cache();
  const std::vector<std::shared_ptr<const RunHead>>& inserted_heads() const { return inserted_heads_; }
  // Whether any of the requested keys exists.
  bool has_found_keys() const { return has_found_keys_; }
  // Runs that try_isolated() skipped because of a lock, and blocks that consist of such runs.
  struct DeferredRuns {
    std::set<Seq> runs;
    std::vector<std::pair<Seq, Seq>> blocks;
  };
  DeferredRuns deferred() const;
  // overdue() skips these runs.
  void skip_overdue(std::set<Seq> runs) { skipped_overdue_ = std::move(runs); }
  // take_writes() adds the dead letters and the keys that it inserts to these.
  void set_inserted_dead_letters(std::map<DeadLetterGroup, DeadLetter>& dead_letters) {
    inserted_dead_letters_ = &dead_letters;
  }
  void set_inserted_keys(std::vector<TenantKey>& keys) { inserted_keys_ = &keys; }
  // A command that reads one of these keys, or inserts a key that must be probed first, gets LockContended.
  void set_contention(ContendedKeys& keys, Duration now) { contention_ = &keys, contention_at_ = now; }
  // Checks for an existing settlement before each one: an earlier attempt failed because of a duplicate.
  void check_settlements() { checks_settlements_ = true; }
  // Whether the batch has read overdue runs.
  bool has_swept() const { return overdue_.has_value(); }
  // Whether the batch has written jobs that may be taken.
  bool has_queued() const { return has_queued_; }
  // The groups whose dead letters the batch has inserted or changed.
  const std::vector<DeadLetterGroup>& written_dead_letters() const { return written_dead_letters_; }
  // Whether another transaction has locked the run.
  bool is_contended(Seq seq) const { return contended_.contains(seq) || peeked_contended_.contains(seq); }
  // The earliest deadline of a run that the batch has written.
  std::optional<Instant> first_deadline() const { return first_deadline_; }

  // --- rows that were read ------------------------------------------------------------------------------------------
  // These rows are locked. A row of `states` comes without its head.
  void load_block(Block block) { blocks_.insert_or_assign(block.lo, std::move(block)); }
  void load_row(Seq seq, Run run) { rows_.insert_or_assign(seq, std::move(run)); }
  // Outcomes and heads never change and are not locked.
  void load_outcome(Seq seq, PlainOutcome outcome) { outcomes_.insert_or_assign(seq, std::move(outcome)); }
  void load_head(std::shared_ptr<const RunHead> head) { heads_.add(head), own_heads_[seq_in(head->id)] = head; }
  // A run that was read by its key without a lock: sufficient for a reply that changes nothing.
  void load_peeked(const Uuid& key, Run run);
  void load_no_key(const Uuid& key) { keys_.insert_or_assign(key, KeySlot{}); }
  // The key was not read; the insert will fail if it exists.
  void assume_no_key(const Uuid& key) { keys_.insert_or_assign(key, KeySlot{.is_assumed = true}); }
  void load_locked_key(const Uuid& key, std::optional<Seq> seq);
  // The key exists: if it could not be locked, another transaction has locked it.
  void load_existing_key(const Uuid& key);
  // All rows of these runs were loaded: a run without rows does not exist.
  void end_load(const std::vector<Seq>& runs);
  // The same for runs_nowait. A contended run that was read by its key remains readable.
  void end_load_nowait(const std::vector<Seq>& runs);
  // All dependents of these runs will be loaded, each with load_dependent().
  void load_all_dependents(const std::vector<Seq>& predecessors);
  void load_dependent(Seq predecessor, RunId dependent) { dependents_[predecessor].insert(dependent); }
  void load_dead_letter(const DeadLetterGroup& group, std::optional<DeadLetter> dead_letter) {
    dead_letters_[group] = {dead_letter, dead_letter};
  }
  // An open one exists: if it could not be locked, another transaction has locked it.
  void load_existing_dead_letter(const DeadLetterGroup& group) {
    if (!dead_letters_.at(group).now) contended_dead_letters_.insert(group);
  }
  void load_ready(const ReadyFilter& filter, ReadyList list);
  void load_overdue(std::vector<ReadyItem> items) { overdue_ = std::move(items); }
  void load_result(const std::string& name, Rows rows) { results_.insert_or_assign(name, std::move(rows)); }
  // Replaces all fences: the old ones were drawn before the latest rows were locked.
  void load_fences(Counters fences) { fences_ = std::move(fences); }
  // Copies the head from the cache if it is there, because the cache may evict it during the batch.
  bool pin_head(Seq seq);

  // --- queries and writes of rare data ------------------------------------------------------------------------------
  // The result of a query. `name` identifies it within the batch. Throws NeedsRead until it was run.
  const Rows& query(const std::string& name, const std::function<Statement()>& make_statement);
  // The same for one row, which is locked. Throws LockContended if another transaction has locked it.
  const Rows& query_for_update(const std::string& name, const std::function<Statement()>& make_statement);
  // Until the command ends, query_for_update() waits for the lock, up to the lock timeout.
  void block_on_row_lock() { blocks_on_row_locks_ = true; }
  // A write that is sent after those before it.
  void write(Statement statement);

  // The first acknowledgement wins. None if the tenant has no such entry.
  std::optional<DeadLetter> acknowledge(const std::optional<std::string>& tenant, Uuid id, const std::string& actor,
                                        Instant now);
  // False if a token has this id already.
  bool add_token(const TokenRecord& token);
  // The first revocation wins. False if there is no such token.
  bool revoke_token(const std::string& id, Instant now);
  void add_all_duplicates(std::span<const DuplicateNote> notes);
  // Erases a slice of the batch ids from before that time. Returns whether there are more.
  bool erase_old_batches(Instant before);

  // --- Tables -------------------------------------------------------------------------------------------------------
  std::optional<Run> find(RunId id) override;
  bool is_locked_foreign_run(RunId id, const std::string& tenant) override;
  std::optional<Run> find_latest(const KeyName& name) override;
  RunId next_id(Instant now) override;
  Fence peek_fence() override;
  void draw_fence() override;
  void insert(const Run& run) override;
  void update(const Run& before, const Run& after) override;
  void set_latest_run_of_key(const Run& run) override;
  void erase(const Run& run) override;
  std::vector<RunId> ready(const TakeRequest& request, Instant now) override;
  std::vector<RunId> overdue(Instant now, std::uint32_t limit) override;
  PurgeSlice purge_candidates(Instant made_by, std::uint32_t limit) override;
  bool has_waits() override { return true; }
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
  void add_duplicates(const DuplicateNote& note) override { add_all_duplicates({&note, 1}); }
  bool try_isolated(RunId run, const std::function<void()>& act) override;

 private:
  // A row as it is in the database, and as the batch will leave it.
  template <class T>
  struct Slot {
    std::optional<T> stored, now;
    bool is_changed = false;
  };
  struct KeySlot {
    std::optional<Seq> stored, now;
    bool is_changed = false, is_locked = false, is_assumed = false;
    std::string tenant;  // set if is_changed
  };
  // The table that stores the run's state. peeked: read by its key, without a lock.
  enum class StoredIn : std::uint8_t { nowhere, block, row, outcome, peeked };
  struct RunSlot {
    std::optional<Run> now;
    StoredIn stored = StoredIn::nowhere;
    bool is_changed = false;
  };
  // The dead letters that a run is a member of.
  struct DeadLettersOf {
    std::set<Seq> numbers;
    bool is_unread = false;  // one of them is not acknowledged
  };

  // Whether the run's state was loaded.
  bool is_loaded(Seq seq) const;
  RunSlot& slot_of(Seq seq);
  RunSlot* find_slot(Seq seq);
  const Block* find_block(Seq seq) const;
  // Throws NeedsRead once for all runs that were not read.
  void need_all(const std::vector<Seq>& seqs);
  // Reads the dead letters of these runs; the query runs after their locks were acquired.
  void find_dead_letters_of(const std::vector<Seq>& locked, Seq from, Seq to);
  // Called before the first write of a request: the keys that it has read must be locked.
  void lock_peeked_keys();
  // Undoes changes until the undo lists have these sizes.
  void undo_to(std::size_t steps, std::size_t runs);
  // Saves the entry that the command is about to change.
  template <class Map>
  void save_for_undo(Map& map, const typename Map::key_type& key);
  void set_run(Seq seq, std::optional<Run> run);
  bool knows_dependents(Seq predecessor) const;
  void note_dependents_known(Seq from, Seq to);
  void set_key(const RunHead& head, std::optional<Seq> seq);
  void note_settlement(const Run& run);
  void put_settlements(std::vector<Statement>& writes);
  void put_run_writes(std::vector<Statement>& writes);
  void put_key_writes(std::vector<Statement>& writes);
  void put_dependency_writes(std::vector<Statement>& writes);
  void put_dead_letter_writes(std::vector<Statement>& writes);
  void put_member_deletes(std::vector<Statement>& writes);

  Random& random_;
  Counters& counters_;
  HeadCache& heads_;
  ReadSet read_set_;
  std::pmr::monotonic_buffer_resource arena_;  // of all maps that have an entry per run; freed at once
  std::pmr::unordered_map<Seq, RunSlot> runs_{&arena_};
  Wanted<Seq> changed_runs_;  // since the last take_writes(); includes some whose change was undone
  // The rows from which find_slot() builds runs.
  std::map<Seq, Block> blocks_;
  std::pmr::unordered_map<Seq, Run> rows_{&arena_};
  std::pmr::unordered_map<Seq, PlainOutcome> outcomes_{&arena_};
  std::pmr::unordered_map<Seq, std::shared_ptr<const RunHead>> own_heads_{&arena_};
  std::set<Seq> contended_, absent_;
  std::set<Seq> peeked_contended_;  // contended, but read by its key without a lock
  std::set<Uuid> contended_keys_;
  std::unordered_map<Uuid, KeySlot> keys_;
  std::set<Uuid> peeked_keys_;                                // keys that the current request has read without a lock
  std::map<std::pair<Seq, RunId>, bool> dependency_changes_;  // predecessor, dependent: true if added, false if removed
  std::map<RunId, bool> removed_dependents_;                  // their dependencies are removed before those changes
  std::map<Seq, std::set<RunId>> dependents_;                 // by predecessor
  std::map<Seq, Seq> dependents_known_;                       // ranges of runs whose dependents were all loaded
  std::map<DeadLetterGroup, Slot<DeadLetter>> dead_letters_;
  std::set<DeadLetterGroup> contended_dead_letters_;
  std::map<ReadyFilter, ReadyList> ready_;
  std::map<DeadLetterGroup, DeadLetter>* inserted_dead_letters_ = nullptr;
  std::vector<TenantKey>* inserted_keys_ = nullptr;
  ContendedKeys* contention_ = nullptr;
  Duration contention_at_{};
  std::optional<std::vector<ReadyItem>> overdue_;
  std::set<Seq> skipped_overdue_, deferred_;
  std::map<std::string, Rows> results_;
  std::vector<Statement> own_writes_;
  std::map<Seq, DeadLettersOf> dead_letters_of_;  // of the slice that is purged, without runs that have none
  std::map<Seq, std::set<Seq>> erased_members_;   // by run: the dead letters that it was removed from
  Counters fences_;
  std::uint64_t fences_drawn_ = 0;  // by the current command
  std::optional<Instant> first_deadline_;
  std::vector<std::shared_ptr<const RunHead>> inserted_heads_;
  std::vector<Seq> ended_;                         // settled or erased by this batch
  bool changed_ = false, changed_before_ = false;  // the latter: before the current command
  bool has_queued_ = false;
  std::vector<DeadLetterGroup> written_dead_letters_;
  bool has_found_keys_ = false;
  bool blocks_on_row_locks_ = false;
  bool needs_read_ = false;
  bool has_unprobed_key_ = false;  // the current command inserts a key that must be probed first
  bool read_own_writes_ = false;   // the current command has read uncommitted changes or assumed keys
  bool has_written_ = false;       // statements were sent: later reads may see uncommitted rows
  bool checks_settlements_ = false;
  std::vector<std::pair<Seq, std::uint32_t>> settled_;  // run and generation, to insert into settlements
  bool written_before_ = false;  // an earlier command has called write(): results_ may be outdated
  std::map<RunId, Duplicates> seen_;
  std::vector<std::move_only_function<void()>> undo_;
  std::vector<std::pair<Seq, std::optional<RunSlot>>> undo_runs_;  // the previous slots; none: erase it
};

template <class Map>
void PgTables::save_for_undo(Map& map, const typename Map::key_type& key) {
  lock_peeked_keys();
  changed_ = true;
  const auto at = map.find(key);
  if (at == map.end()) {
    undo_.emplace_back([&map, key] { map.erase(key); });
  } else {
    undo_.emplace_back([&map, key, before = at->second]() mutable { map[key] = std::move(before); });
  }
}

// Plans the query of erase_old_batches(), which saves a round trip.
void plan_old_batches(ReadSet& read_set, Instant before);

}  // namespace latchkey::pg
