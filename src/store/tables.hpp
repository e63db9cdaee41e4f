// Tables: the reads and writes of one transaction of a back end. store/apply.cpp turns commands into these calls, so
// that memory, SQLite and PostgreSQL share every rule and differ only in how they store rows.
//
// One thread at a time uses it, inside a transaction that the back end opens and commits. A failed write throws
// TablesError; the back end then rolls everything back, including its memory.
#pragma once

#include <functional>
#include <optional>
#include <stdexcept>
#include <vector>

#include "model/decide.hpp"
#include "store/duplicates.hpp"
#include "store/store.hpp"

namespace latchkey {

struct TablesError : std::runtime_error {
  TablesError(Code code, const std::string& detail) : std::runtime_error(detail), code(code) {}
  Code code;
};

struct PurgeSlice {
  std::vector<Run> runs;
  bool more = false;  // false: the end was reached, the next call starts at the beginning
};

class Tables {
 public:
  virtual ~Tables() = default;

  virtual std::optional<Run> find(RunId id) = 0;
  // True if another transaction has locked this run and the run belongs to another tenant. Waiting for its lock would
  // reveal that the run exists. Embedded stores have no other writers.
  virtual bool is_locked_foreign_run(RunId, const std::string& /*tenant*/) { return false; }
  // The latest run of a guarded key. Compares the whole text of the key, not only the hash.
  virtual std::optional<Run> find_latest(const KeyName& name) = 0;

  virtual RunId next_id(Instant now) = 0;
  // The fence of the next owner. draw_fence() uses it up.
  virtual Fence peek_fence() = 0;
  virtual void draw_fence() = 0;

  // Inserts a new run. If it has a guard, it becomes the latest run of its key.
  virtual void insert(const Run& run) = 0;
  virtual void update(const Run& before, const Run& after) = 0;
  // Makes an older run the latest run of its key again.
  virtual void set_latest_run_of_key(const Run& run) = 0;
  virtual void erase(const Run& run) = 0;

  // Jobs that may be taken now, in order; without those for which try_isolated() has returned false.
  virtual std::vector<RunId> ready(const TakeRequest& request, Instant now) = 0;
  // Open runs whose next_deadline() is not after now.
  virtual std::vector<RunId> overdue(Instant now, std::uint32_t limit) = 0;
  // Settled runs among the next `limit` made at `made_by` or before, oldest first, from where the last call stopped.
  virtual PurgeSlice purge_candidates(Instant made_by, std::uint32_t limit) = 0;

  // False if no run waits for another run: most stores never receive an `after`.
  virtual bool has_waits() = 0;
  virtual void add_wait(RunId predecessor, RunId dependent) = 0;
  virtual void remove_wait(RunId predecessor, RunId dependent) = 0;
  // Removes all waits of this run.
  virtual void remove_waits_of(RunId dependent) = 0;
  virtual std::vector<RunId> dependents(RunId predecessor) = 0;

  // Adds the failed run to the open entry of its group, which is created if there is none. Returns the entry's id.
  virtual Uuid add_dead_letter(const Run& run) = 0;
  // For a run from the last purge_candidates().
  virtual bool has_unacknowledged_dead_letter(RunId run) = 0;
  // The entry that contains the run's current generation.
  virtual std::optional<Uuid> dead_letter_of(const Run& run) = 0;
  // The entry of another tenant than the named one is reported as absent, and its lock is not waited for.
  virtual std::optional<DeadLetter> find_dead_letter(const std::optional<std::string>& tenant, Uuid id) = 0;
  // The entry's members after `after`, ordered by position, without their steps.
  virtual std::vector<DeadLetterMember> list_members(Uuid dead_letter, MemberPosition after, std::uint32_t limit) = 0;
  // The run's latest generation that is a member of the entry.
  virtual std::optional<DeadLetterMember> find_member(Uuid dead_letter, RunId run) = 0;
  // False if the member has a step of this kind already.
  virtual bool add_step(const DeadLetterMember& member, const MemberStep& step) = 0;
  // Removes the run from its entries, and deletes acknowledged entries that are empty then.
  virtual void erase_members(RunId run) = 0;

  virtual void add_duplicates(const DuplicateNote& note) = 0;

  // Executes `act` for one run among many. Returns false, without a change, if another transaction has locked a row
  // that `act` needs. Embedded stores have no other writers.
  virtual bool try_isolated(RunId, const std::function<void()>& act) {
    act();
    return true;
  }
};

}  // namespace latchkey
