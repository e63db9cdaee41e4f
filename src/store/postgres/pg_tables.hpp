// PgTables: what one transaction on PostgreSQL has read and will write. store/apply.cpp works on it as on any Tables;
// it asks no database itself. What was not read yet is noted in needs() and NeedsRead is thrown: the command is undone,
// the rows are read (and locked) for all such commands in one round trip, and it is applied again. Writes are kept
// until take_writes(), which makes a statement per table of them.
//
// What is rare (members of dead letters, steps, counts of duplicates) is not kept here: it is read and written by
// statements of its own, after what was written before them.
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

// Something was not read yet.
struct NeedsRead {};
// Somebody else holds what it needs, or has just moved it: to be tried again later, by itself.
struct LockContended {};
// The database has a settlement of what it says is open: no further try will find it otherwise.
struct StateConflict : LockContended {};
// What is told of it when patience is over.
inline Error lock_contended_error() {
  return {Code::STORE_UNAVAILABLE, "row is locked by another transaction; nothing was changed; retry"};
}

using LetterName = std::pair<std::string, std::string>;  // tenant, function

// Which jobs a take may have.
struct ReadyName {
  std::optional<std::string> tenant;
  std::vector<std::string> functions;
  auto operator<=>(const ReadyName&) const = default;
};
// One that may be taken: a block, or a run with a row of its own.
struct ReadyItem {
  std::int32_t priority = 0;
  Instant due_at;
  Seq lo = 0, hi = 0;
};

struct ReadyWish {
  std::uint32_t count = 0;                   // of runs
  bool is_second = false;                    // the first had too few of them
  bool exclude_past_retry_deadline = false;  // not those that may be tried no more: somebody holds what ends them
};
struct ReadyList {
  std::vector<ReadyItem> items;
  bool are_all = false;
  bool exclude_past_retry_deadline = false;
};

struct ReadSet {
  Wanted<Seq> runs;               // to be locked
  Wanted<Seq> runs_nowait;        // to be locked, if somebody who was known to hold them does no more
  Wanted<Seq> heads;              // of runs that are locked
  Wanted<Uuid> keys_snapshot;     // as they stand, not locked
  Wanted<Uuid> keys_assumed_new;  // as they stand; likely to be free
  Wanted<Uuid> keys_for_update;   // locked
  Wanted<Seq> waits;
  std::set<LetterName> letters;
  std::map<ReadyName, ReadyWish> ready;
  std::uint32_t overdue = 0;  // how many
  std::vector<std::pair<std::string, Statement>> questions;
  std::uint32_t counters = 0;
  std::uint64_t fences = 0;
};

// Numbers of a sequence, drawn by the thousand: counters for new ids, used by one batch after the other; fences.
class Counters {
 public:
  std::optional<std::uint64_t> peek() const;
  std::optional<std::uint64_t> next();
  std::size_t left() const;
  void add(std::uint64_t first);
  // The last that was drawn and has not been given back.
  void give_back(std::uint64_t drawn);
  void forget() { ranges_.clear(); }

 private:
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges_;  // next, end
};
inline constexpr std::uint64_t kDrawn = 1000;

class PgTables final : public Tables {
 public:
  PgTables(Random& random, Counters& counters, HeadCache& heads)
      : random_(random), counters_(counters), heads_(heads) {}

  // --- of the batch -------------------------------------------------------------------------------------------------
  ReadSet take_needs() { return std::exchange(needs_, {}); }
  // Statements for what was written since the last time. One that finds a key or an open letter taken meanwhile fails.
  std::vector<Statement> take_writes();
  bool has_changed() const { return changed_; }
  // Around each command, and each request of one.
  void begin_command() {
    undo_.clear();
    undo_runs_.clear();
    written_before_ = !own_writes_.empty();
    in_turn_ = false;
    needs_read_ = false;
    has_unprobed_key_ = false;
    read_own_writes_ = has_written_;
    fences_drawn_ = 0;
    changed_before_ = begin_request().changed;
  }
  // Something was missing: what others lack is found out as well, and then all is asked for at once.
  void request_another_round() { needs_read_ = true; }
  // Throws when something was, or is to be looked at first: all of that is known then.
  void end_command() const {
    if (needs_read_) throw NeedsRead{};
    end_request();
  }
  // Whether this command has changed nothing, nor seen what this batch has: its answer is as good before the commit.
  bool is_read_only() const { return !read_own_writes_ && undo_.empty() && undo_runs_.empty(); }
  // To where one request of several is undone.
  struct Mark {
    std::size_t steps, runs;
    bool changed;
  };
  Mark begin_request() {
    peeked_.clear();
    return {undo_.size(), undo_runs_.size(), changed_};
  }
  void end_request() const {
    if (has_unprobed_key_) throw LockContended{};
  }
  void undo_request(Mark mark) {
    undo_to(mark.steps, mark.runs);
    changed_ = mark.changed;
    has_unprobed_key_ = false;
  }
  void undo_command();
  // Tells the cache which runs this batch has made and which it has ended, once that is kept.
  void remember_heads();
  const std::vector<std::shared_ptr<const RunHead>>& made_heads() const { return made_heads_; }
  // Whether keys that were asked for were there.
  bool has_met_keys() const { return has_met_keys_; }
  // Runs that try_isolated() could do nothing for, and blocks that consist of such; as they lie now.
  struct DeferredRuns {
    std::set<Seq> runs;
    std::vector<std::pair<Seq, Seq>> blocks;
  };
  DeferredRuns left_out() const;
  // These are not overdue for now.
  void pass_over(std::set<Seq> runs) { passed_over_ = std::move(runs); }
  // Letters that this batch opens are told there before they are written.
  void set_inserted_dead_letters(std::map<LetterName, DeadLetter>& letters) { new_letters_ = &letters; }
  // And keys that it makes.
  void set_inserted_keys(std::vector<TenantKey>& keys) { new_keys_ = &keys; }
  // Somebody is inserting these: whoever asks for one finds it Held. So does who would make one that must be seen
  // first.
  void set_contention(ContendedKeys& keys, Duration now) { left_keys_ = &keys, left_at_ = now; }
  // Asks before it settles anything whether it is settled: a try before this one was refused for that.
  void check_settlements() { checks_settlements_ = true; }
  // Whether it has looked for what is overdue.
  bool has_swept() const { return overdue_.has_value(); }
  // Whether this batch has written jobs that may be taken.
  bool has_queued() const { return has_queued_; }
  // Whose dead letters it has opened or changed.
  const std::vector<LetterName>& written_letters() const { return written_letters_; }
  // Whether somebody else was found to have it.
  bool is_held(Seq seq) const { return busy_.contains(seq) || seen_only_.contains(seq); }
  // The earliest time at which time alone changes something that this batch has written.
  std::optional<Instant> first_deadline() const { return first_deadline_; }

  // Locked.
  void load_block(Block block) { blocks_.insert_or_assign(block.lo, std::move(block)); }
  void load_row(Seq seq, Run run) { rows_.insert_or_assign(seq, std::move(run)); }  // without its head
  // Never changes.
  void load_outcome(Seq seq, PlainOutcome outcome) { outcomes_.insert_or_assign(seq, std::move(outcome)); }
  void load_head(std::shared_ptr<const RunHead> head) { heads_.add(head), own_heads_[seq_in(head->id)] = head; }
  // As it stands, not locked: enough for an answer that changes nothing.
  void load_peeked(const Uuid& key, Run run);
  void load_no_key(const Uuid& key) { keys_.insert_or_assign(key, KeySlot{}); }
  // It was not looked for: the index will say if it is there.
  void guess_no_key(const Uuid& key) { keys_.insert_or_assign(key, KeySlot{.is_guessed = true}); }
  void load_held_key(const Uuid& key, std::optional<Seq> seq);
  // It is there: if it could not be held, somebody else holds it.
  void load_existing_key(const Uuid& key);
  // Everything that was asked for about these has been loaded: what is not there is nowhere.
  void end_load(const std::vector<Seq>& runs);
  // The same of those that were known to be held. One that was found by its key stands as it was seen.
  void end_load_held(const std::vector<Seq>& runs);
  // Everything that waits for these; then each of it.
  void load_waits(const std::vector<Seq>& predecessors);
  void load_wait(Seq predecessor, RunId dependent) { waits_[predecessor].insert(dependent); }
  void load_letter(const LetterName& name, std::optional<DeadLetter> letter) { letters_[name] = {letter, letter}; }
  void load_existing_letter(const LetterName& name) {
    if (!letters_.at(name).now) busy_letters_.insert(name);
  }
  void load_ready(const ReadyName& name, ReadyList list);
  void load_overdue(std::vector<ReadyItem> items) { overdue_ = std::move(items); }
  void load_answer(const std::string& question, Rows rows) { answers_.insert_or_assign(question, std::move(rows)); }
  // Instead of those that are left: they were drawn before what is locked now was.
  void load_fences(Counters fences) { fences_ = std::move(fences); }
  // Whether the head need not be read. Kept for this batch then: the cache may forget it while others go on.
  bool pin_head(Seq seq);

  // The answer to a question of its own; NeedsRead until it was asked.
  const Rows& ask(const std::string& name, const std::function<Statement()>& question);
  // The same of one row, which is locked. Held when somebody else has it.
  const Rows& query_for_update(const std::string& name, const std::function<Statement()>& question);
  // From here to the command's end: query_for_update() waits for its turn, as long as anything may.
  void block_on_row_lock() { in_turn_ = true; }
  // A write of its own, in its place after those before it.
  void write(Statement statement);

  // --- cold things --------------------------------------------------------------------------------------------------
  // The first acknowledgement stands. None when there is no such entry of the tenant's.
  std::optional<DeadLetter> acknowledge(const std::optional<std::string>& tenant, Uuid id, const std::string& actor,
                                        Instant now);
  // False when there is one of this id.
  bool add_token(const TokenRecord& token);
  // The first time stands. False when there is none.
  bool revoke_token(const std::string& id, Instant now);
  void add_all_duplicates(std::span<const DuplicateNote> notes);
  // Names of batches that nobody asks for any more, so many at a time. Whether there are more.
  bool erase_old_names(Instant before);

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
  bool has_unread_dead_letter(RunId run) override;
  std::optional<Uuid> dead_letter_of(const Run& run) override;
  std::optional<DeadLetter> find_dead_letter(const std::optional<std::string>& tenant, Uuid id) override;
  std::vector<DeadLetterMember> list_members(Uuid dead_letter, MemberPlace after, std::uint32_t limit) override;
  std::optional<DeadLetterMember> find_member(Uuid dead_letter, RunId run) override;
  bool add_step(const DeadLetterMember& member, const MemberStep& step) override;
  void erase_members(RunId run) override;
  void add_duplicates(const DuplicateNote& note) override { add_all_duplicates({&note, 1}); }
  bool try_isolated(RunId run, const std::function<void()>& act) override;

 private:
  // As it is in the database, and as it is to be.
  template <class T>
  struct Slot {
    std::optional<T> stored, now;
    bool is_changed = false;
  };
  struct KeySlot {
    std::optional<Seq> stored, now;
    bool is_changed = false, is_held = false, is_guessed = false;
    std::string tenant;  // set when it is changed
  };
  enum class Place : std::uint8_t { nowhere, block, row, outcome, peeked };
  struct RunSlot {
    std::optional<Run> now;
    Place stored = Place::nowhere;
    bool is_changed = false;
  };
  // The dead letters that a run is in.
  struct LettersOf {
    std::set<Seq> numbers;
    bool is_unread = false;  // one of them
  };

  // Whether what was locked says how it stands.
  bool is_loaded(Seq seq) const;
  RunSlot& slot_of(Seq seq);
  RunSlot* find_slot(Seq seq);
  const Block* find_block(Seq seq) const;
  // Throws for all of them at once.
  void need_all(const std::vector<Seq>& seqs);
  // The same of what they are in; asked for behind their locks.
  void find_letters_of(const std::vector<Seq>& locked, Seq from, Seq to);
  // Before the first write of a request: what it saw of keys must be held.
  void hold_peeked();
  // What was changed since there were so many steps to be undone.
  void undo_to(std::size_t steps, std::size_t runs);
  // Notes what a command is about to change.
  template <class Map>
  void remember(Map& map, const typename Map::key_type& key);
  void set_run(Seq seq, std::optional<Run> run);
  bool knows_waits(Seq predecessor) const;
  void note_waits_known(Seq from, Seq to);
  void set_key(const RunHead& head, std::optional<Seq> seq);
  void note_settlement(const Run& run);
  void put_settlements(std::vector<Statement>& writes);
  void put_run_writes(std::vector<Statement>& writes);
  void put_key_writes(std::vector<Statement>& writes);
  void put_wait_writes(std::vector<Statement>& writes);
  void put_letter_writes(std::vector<Statement>& writes);
  void put_member_deletes(std::vector<Statement>& writes);

  Random& random_;
  Counters& counters_;
  HeadCache& heads_;
  ReadSet needs_;
  std::pmr::monotonic_buffer_resource arena_;  // of what there is one of for each run: it goes all at once
  std::pmr::unordered_map<Seq, RunSlot> runs_{&arena_};
  Wanted<Seq> changed_runs_;  // since the last take_writes(); also some whose change was undone
  // What runs are put together from when they are asked for.
  std::map<Seq, Block> blocks_;
  std::pmr::unordered_map<Seq, Run> rows_{&arena_};
  std::pmr::unordered_map<Seq, PlainOutcome> outcomes_{&arena_};
  std::pmr::unordered_map<Seq, std::shared_ptr<const RunHead>> own_heads_{&arena_};
  std::set<Seq> busy_, absent_;
  std::set<Seq> seen_only_;  // somebody has it, and it was found by its key
  std::set<Uuid> busy_keys_;
  std::unordered_map<Uuid, KeySlot> keys_;
  std::set<Uuid> peeked_;
  std::map<std::pair<Seq, RunId>, bool> wait_changes_;  // predecessor, dependent: added or removed
  std::map<RunId, bool> waits_forgotten_;               // of these dependents, before those changes
  std::map<Seq, std::set<RunId>> waits_;                // by predecessor, where there are any
  std::map<Seq, Seq> waits_known_;                      // from which run to which it is known what waits for them
  std::map<LetterName, Slot<DeadLetter>> letters_;
  std::set<LetterName> busy_letters_;
  std::map<ReadyName, ReadyList> ready_;
  std::map<LetterName, DeadLetter>* new_letters_ = nullptr;
  std::vector<TenantKey>* new_keys_ = nullptr;
  ContendedKeys* left_keys_ = nullptr;
  Duration left_at_{};
  std::optional<std::vector<ReadyItem>> overdue_;
  std::set<Seq> passed_over_, deferred_;
  std::map<std::string, Rows> answers_;
  std::vector<Statement> own_writes_;
  std::map<Seq, LettersOf> letters_of_;          // of the slice that is purged; only those that are in any
  std::map<Seq, std::set<Seq>> erased_members_;  // which runs are gone from which letters
  Counters fences_;
  std::uint64_t fences_drawn_ = 0;  // by this command
  std::optional<Instant> first_deadline_;
  std::vector<std::shared_ptr<const RunHead>> made_heads_;
  std::vector<Seq> done_;                          // settled or erased by this batch
  bool changed_ = false, changed_before_ = false;  // before this command
  bool has_queued_ = false;
  std::vector<LetterName> written_letters_;
  bool has_met_keys_ = false;
  bool in_turn_ = false;
  bool needs_read_ = false;
  bool has_unprobed_key_ = false;  // a key of it is to be looked at first
  bool read_own_writes_ = false;   // this command has read what this batch has changed, or guesses
  bool has_written_ = false;       // something that is read from now on may not be committed
  bool checks_settlements_ = false;
  std::vector<std::pair<Seq, std::uint32_t>> settled_;  // generations, that are to be entered
  bool written_before_ = false;  // by a command before this one: what was answered may be another now
  std::map<RunId, Duplicates> seen_;
  std::vector<std::move_only_function<void()>> undo_;
  std::vector<std::pair<Seq, std::optional<RunSlot>>> undo_runs_;  // as they were; none: not there
};

template <class Map>
void PgTables::remember(Map& map, const typename Map::key_type& key) {
  hold_peeked();
  changed_ = true;
  const auto at = map.find(key);
  if (at == map.end()) {
    undo_.emplace_back([&map, key] { map.erase(key); });
  } else {
    undo_.emplace_back([&map, key, before = at->second]() mutable { map[key] = std::move(before); });
  }
}

// So that erase_old_names() need not ask.
void plan_old_names(ReadSet& needs, Instant before);

}  // namespace latchkey::pg
