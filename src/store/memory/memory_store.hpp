// MemoryStore: the whole store in memory. A verb applies its command on the caller's thread, under a mutex, and calls
// the callback before it returns. All runs are lost with the object.
#pragma once

#include <mutex>

#include "store/memory/memory_tables.hpp"
#include "store/store.hpp"
#include "store/store_clock.hpp"

namespace latchkey {

class MemoryStore final : public Store {
 public:
  MemoryStore(Clock& clock, Random& random) : clock_(clock), random_(random), tables_(random) {}

  void claim(ClaimRequest request, Done<ClaimReply> done) override;
  void extend(std::vector<ExtendRequest> requests, Done<std::vector<ExtendReply>> done) override;
  void settle(std::vector<SettleRequest> requests, Done<std::vector<SettleReply>> done) override;
  void enqueue(std::vector<EnqueueRequest> requests, Done<std::vector<EnqueueReply>> done) override;
  void take(TakeRequest request, Done<std::vector<Taken>> done) override;
  void move(MoveRequest request, Done<MoveReply> done) override;
  void sweep(std::uint32_t limit, Done<Swept> done) override;
  void purge(Retention retention, std::uint32_t limit, Done<Swept> done) override;
  void note_duplicates(std::vector<DuplicateNote> notes, Done<std::monostate> done) override;

  Result<std::optional<Run>> find(const std::optional<std::string>& tenant, RunId id) override;
  Result<std::optional<Run>> find_latest(const KeyName& name) override;
  Result<Page> list(const ListQuery& query) override;
  Result<std::optional<Duplicates>> find_duplicates(RunId id) override;
  Result<StoreStats> stats() override;
  Instant now() override { return clock_.now(); }
  std::optional<Instant> next_deadline() override;

  Result<DeadLetterPage> list_dead_letters(const DeadLetterQuery& query) override;
  Result<std::optional<DeadLetter>> find_dead_letter(const std::optional<std::string>& tenant, Uuid id) override;
  Result<std::vector<DeadLetterMember>> list_members(Uuid dead_letter, std::uint32_t limit,
                                                     MemberPosition after = {}) override;
  Result<std::optional<DeadLetter>> acknowledge(const std::optional<std::string>& tenant, Uuid id,
                                                const std::string& actor) override;
  Result<std::optional<DeadLetterActionReply>> act_on_dead_letter(const DeadLetterActionRequest& request) override;
  Result<std::monostate> add_token(const TokenRecord& token) override;
  Result<std::vector<TokenRecord>> list_tokens() override;
  Result<bool> revoke_token(const std::string& id) override;

 private:
  // Applies the command under the mutex, then calls the callback without it.
  template <class T, class Apply>
  void apply(Done<T> done, Apply apply);

  StoreClock clock_;
  Random& random_;
  std::mutex mutex_;
  MemoryTables tables_;
};

}  // namespace latchkey
