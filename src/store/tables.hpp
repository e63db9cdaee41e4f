// Tables: what one transaction of a back end can read and write. store/apply.cpp turns commands into these calls, so
// that memory, SQLite and PostgreSQL share every rule and differ only in where rows lie.
//
// Used by one thread at a time, inside a transaction that the back end opens and commits. A failed write throws
// TablesError; the back end then rolls everything back, its memory included.
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
  // Whether somebody else holds a run that this tenant may not even know of: asking for it would wait, and so tell.
  // Most stores are nobody else's.
  virtual bool is_locked_foreign_run(RunId, const std::string& /*tenant*/) { return false; }
  // The guarded key's latest run; compares the whole text, not only the hash.
  virtual std::optional<Run> find_latest(const KeyName& name) = 0;

  virtual RunId next_id(Instant now) = 0;
  // The fence that the next owner would get; it is used up by draw_fence().
  virtual Fence peek_fence() = 0;
  virtual void draw_fence() = 0;

  // A new run. If it is guarded it becomes its key's latest.
  virtual void insert(const Run& run) = 0;
  virtual void update(const Run& before, const Run& after) = 0;
  // Makes an old run its key's latest again.
  virtual void set_latest_run_of_key(const Run& run) = 0;
  virtual void erase(const Run& run) = 0;

  // Jobs that may be taken now, in order; none that try_isolated() could do nothing for.
  virtual std::vector<RunId> ready(const TakeRequest& request, Instant now) = 0;
  // Open runs whose next_deadline() is not after now.
  virtual std::vector<RunId> overdue(Instant now, std::uint32_t limit) = 0;
  // Settled runs among the next `limit` made at `made_by` or before, oldest first, from where the last call stopped.
  virtual PurgeSlice purge_candidates(Instant made_by, std::uint32_t limit) = 0;

  // False when certainly nothing waits for anything: most stores never see an `after`.
  virtual bool has_waits() = 0;
  virtual void add_wait(RunId predecessor, RunId dependent) = 0;
  virtual void remove_wait(RunId predecessor, RunId dependent) = 0;
  // Whatever it waits for: it does no more.
  virtual void remove_waits_of(RunId dependent) = 0;
  virtual std::vector<RunId> dependents(RunId predecessor) = 0;

  // Puts the failed run into its group's open entry, which is made if there is none. Gives the entry's id.
  virtual Uuid add_dead_letter(const Run& run) = 0;
  // Of a run among the last purge_candidates().
  virtual bool has_unacknowledged_dead_letter(RunId run) = 0;
  // The entry that the run's current generation is in.
  virtual std::optional<Uuid> dead_letter_of(const Run& run) = 0;
  // Of this tenant, where one is named: another's is not there, whoever holds it.
  virtual std::optional<DeadLetter> find_dead_letter(const std::optional<std::string>& tenant, Uuid id) = 0;
  // The entry's members behind `after`, in the order of their place; without their steps.
  virtual std::vector<DeadLetterMember> list_members(Uuid dead_letter, MemberPosition after, std::uint32_t limit) = 0;
  // The run's latest generation that is a member of the entry.
  virtual std::optional<DeadLetterMember> find_member(Uuid dead_letter, RunId run) = 0;
  // False when a step of this kind is there already.
  virtual bool add_step(const DeadLetterMember& member, const MemberStep& step) = 0;
  // Takes such a run out of its entries, and removes acknowledged ones that are empty then.
  virtual void erase_members(RunId run) = 0;

  virtual void add_duplicates(const DuplicateNote& note) = 0;

  // Does what is due for one run among many. False, and nothing was done, when somebody else holds what it needs: the
  // others go on without it. Most stores are nobody else's.
  virtual bool try_isolated(RunId, const std::function<void()>& act) {
    act();
    return true;
  }
};

}  // namespace latchkey
