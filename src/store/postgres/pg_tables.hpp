// PgTables: what one transaction on PostgreSQL has read and will write. store/apply.cpp works on it as on any Tables;
// it asks no database itself. What was not read yet is noted in needs() and Missing is thrown: the command is undone,
// the rows are read (and locked) for all such commands in one round trip, and it is applied again. Writes are kept
// until take_writes(), which makes a statement per table of them.
//
// What is rare (members of dead letters, steps, counts of duplicates) is not kept here: it is read and written by
// statements of its own, after what was written before them.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/random.hpp"
#include "store/postgres/run_columns.hpp"
#include "store/tables.hpp"

namespace latchkey::pg {

// Something was not read yet.
struct Missing {};

using LetterName = std::pair<std::string, std::string>;  // tenant, function

// Which jobs a take may have.
struct ReadyName {
  std::optional<std::string> tenant;
  std::vector<std::string> functions;
  auto operator<=>(const ReadyName&) const = default;
};

struct Needs {
  std::set<Seq> runs;
  std::set<Digest> keys;
  std::set<Seq> waits;
  std::set<LetterName> letters;
  std::map<ReadyName, std::uint32_t> ready;  // and how many
  std::vector<std::pair<std::string, Statement>> questions;
  std::uint32_t counters = 0;
  bool fences = false;

  bool empty() const {
    return runs.empty() && keys.empty() && waits.empty() && letters.empty() && ready.empty() && questions.empty() &&
           counters == 0 && !fences;
  }
};

// Counters for new ids, drawn by the thousand and used by one batch after the other.
class Counters {
 public:
  std::optional<std::uint64_t> next();
  std::size_t left() const;
  void add(std::uint64_t first);
  void forget() { ranges_.clear(); }

 private:
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges_;  // next, end
};
inline constexpr std::uint64_t kDrawn = 1000;

class PgTables final : public Tables {
 public:
  PgTables(Random& random, Counters& counters) : random_(random), counters_(counters) {}

  // --- of the batch -------------------------------------------------------------------------------------------------
  Needs take_needs() { return std::exchange(needs_, {}); }
  // Statements for what was written since the last time. One that finds a key or an open letter taken meanwhile fails.
  std::vector<Statement> take_writes();
  bool has_writes() const;
  bool has_changed() const { return changed_; }
  // Around each command.
  void begin_command() {
    undo_.clear();
    written_before_ = !own_writes_.empty();
  }
  void undo_command();

  void load_run(Run run, bool has_dependents);
  void load_no_run(Seq seq);
  void load_key(const Digest& hash, std::optional<Seq> seq) { keys_[hash] = {seq, seq}; }
  void load_waits(Seq predecessor, std::set<RunId> dependents) { waits_[predecessor] = std::move(dependents); }
  void load_letter(const LetterName& name, std::optional<DeadLetter> letter) { letters_[name] = {letter, letter}; }
  void load_ready(const ReadyName& name, std::vector<Seq> seqs);
  void load_answer(const std::string& question, Rows rows) { answers_.insert_or_assign(question, std::move(rows)); }
  void load_fences(std::uint64_t first) { fence_ = first, fence_end_ = first + kDrawn; }
  bool knows_run(Seq seq) const { return runs_.contains(seq); }

  // The answer to a question of its own; Missing until it was asked.
  const Rows& ask(const std::string& name, const std::function<Statement()>& question);
  // A write of its own, in its place after those before it.
  void write(Statement statement);
  // Where purging goes on.
  Seq purged_to = 0;

  // --- Tables -------------------------------------------------------------------------------------------------------
  std::optional<Run> find(RunId id) override;
  std::optional<Run> find_latest(const KeyName& name) override;
  RunId next_id(Instant now) override;
  Fence peek_fence() override;
  void draw_fence() override { fence_ += 1; }
  void insert(const Run& run) override;
  void update(const Run& before, const Run& after) override;
  void point_key(const Run& run) override;
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
  std::optional<DeadLetter> find_dead_letter(Uuid id) override;
  std::vector<DeadLetterMember> list_members(Uuid dead_letter, MemberPlace after, std::uint32_t limit) override;
  std::optional<DeadLetterMember> find_member(Uuid dead_letter, RunId run) override;
  bool add_step(const DeadLetterMember& member, const MemberStep& step) override;
  void erase_members(RunId run) override;
  void add_duplicates(const DuplicateNote& note) override;

 private:
  // As it is in the database, and as it is to be.
  template <class T>
  struct Slot {
    std::optional<T> stored, now;
    bool is_changed = false;
  };
  using RunSlot = Slot<Run>;

  RunSlot& slot_of(Seq seq);
  // Notes what a command is about to change.
  template <class Map>
  void remember(Map& map, const typename Map::key_type& key);
  void set_run(Seq seq, std::optional<Run> run);
  void set_key(const RunHead& head, std::optional<Seq> seq);
  void put_run_writes(std::vector<Statement>& writes);
  void put_key_writes(std::vector<Statement>& writes);
  void put_wait_writes(std::vector<Statement>& writes);
  void put_letter_writes(std::vector<Statement>& writes);

  Random& random_;
  Counters& counters_;
  Needs needs_;
  std::unordered_map<Seq, RunSlot> runs_;
  std::map<Digest, Slot<Seq>> keys_;
  std::map<Digest, std::string> tenants_;               // of keys that are written
  std::map<std::pair<Seq, RunId>, bool> wait_changes_;  // predecessor, dependent: added or removed
  std::map<RunId, bool> waits_forgotten_;               // of these dependents, before those changes
  std::map<Seq, std::set<RunId>> waits_;
  std::map<LetterName, Slot<DeadLetter>> letters_;
  std::map<ReadyName, std::vector<Seq>> ready_;
  std::map<std::string, Rows> answers_;
  std::vector<Statement> own_writes_;
  std::map<Seq, bool> unread_;  // whether the run is in a letter that nobody has acknowledged
  std::uint64_t fence_ = 0, fence_end_ = 0;
  bool changed_ = false;
  bool written_before_ = false;  // by a command before this one: what was answered may be another now
  std::map<RunId, Duplicates> seen_;
  std::vector<std::move_only_function<void()>> undo_;
};

template <class Map>
void PgTables::remember(Map& map, const typename Map::key_type& key) {
  changed_ = true;
  const auto at = map.find(key);
  if (at == map.end()) {
    undo_.emplace_back([&map, key] { map.erase(key); });
  } else {
    undo_.emplace_back([&map, key, before = at->second]() mutable { map[key] = std::move(before); });
  }
}

}  // namespace latchkey::pg
