// MemoryTables: tables in memory, for tests and the simulation. They are lost with the process.
#pragma once

#include <map>
#include <set>
#include <unordered_map>

#include "base/random.hpp"
#include "store/ready_index.hpp"
#include "store/tables.hpp"

namespace latchkey {

class MemoryTables final : public Tables {
 public:
  explicit MemoryTables(Random& random) : random_(random) {}

  std::optional<Run> find(RunId id) override;
  std::optional<Run> find_latest(const KeyName& name) override;
  RunId next_id(Instant now) override;
  Fence peek_fence() override { return Fence{fence_ + 1}; }
  void draw_fence() override { ++fence_; }
  void insert(const Run& run) override;
  void update(const Run& before, const Run& after) override;
  void set_latest_run_of_key(const Run& run) override;
  void erase(const Run& run) override;
  std::vector<RunId> ready(const TakeRequest& request, Instant now) override {
    return ready_index_.ready(request, now);
  }
  std::vector<RunId> overdue(Instant now, std::uint32_t limit) override { return ready_index_.overdue(now, limit); }
  PurgeSlice purge_candidates(Instant made_by, std::uint32_t limit) override;
  bool has_waits() override { return !waits_.empty(); }
  void add_wait(RunId predecessor, RunId dependent) override { waits_[predecessor].insert(dependent); }
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

  Page list(const ListQuery& query) const;
  StoreStats stats() const;
  std::optional<Instant> next_deadline() const { return ready_index_.next_deadline(); }
  std::optional<Duplicates> find_duplicates(RunId id) const;

  struct StoredDeadLetter {
    DeadLetter entry;
    std::vector<DeadLetterMember> members;
  };
  std::map<Uuid, StoredDeadLetter> dead_letters;
  std::map<std::string, TokenRecord> tokens;

 private:
  Random& random_;
  std::uint64_t counter_ = 0;
  std::uint64_t fence_ = 0;
  std::map<std::uint64_t, Run> runs_;  // by the counter in the id, which is the order of creation
  std::map<Digest, RunId> keys_;
  std::map<RunId, std::set<RunId>> waits_;
  std::map<RunId, Duplicates> duplicates_;
  ReadyIndex ready_index_;
  std::uint64_t purged_to_ = 0;
};

}  // namespace latchkey
