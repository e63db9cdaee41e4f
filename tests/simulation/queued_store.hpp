// A store whose commands wait for step(), as SQLite's do: several are applied at one instant, and a crash loses the
// waiting ones. It wraps a store that applies commands at once, or several hosts' stores on one database. Each command
// goes to one of them, replies come from their threads, and step() returns after all replies.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <vector>

#include "base/random.hpp"
#include "store/store.hpp"

namespace latchkey::sim {

class QueuedStore final : public Store {
 public:
  explicit QueuedStore(Store& store) : hosts_{&store} {}
  QueuedStore(std::vector<Store*> hosts, Random& dice) : hosts_(std::move(hosts)), dice_(&dice) {}

  std::size_t step() {
    const std::size_t count = commands_.size();
    submit_commands();
    // Callbacks run after all commands are applied.
    for (auto& reply : answers_->wait_for(count, stuck_after, release_locks)) reply();
    return count;
  }
  // Called when a step does not end, and before calls that do not wait for a step: it must release the locks of other
  // sessions that block the store.
  std::function<void()> release_locks = [] {};
  std::chrono::milliseconds stuck_after{30};
  void crash() { commands_.clear(); }
  // The first half of a step; the replies are dropped. The hosts must be closed before this object is destroyed.
  void submit_commands() {
    now();  // advances the clock of every host, so that none applies an earlier time
    for (auto& command : std::exchange(commands_, {})) command(pick());
  }

  void claim(ClaimRequest request, Done<ClaimReply> done) override {
    put(&Store::claim, std::move(request), std::move(done));
  }
  void extend(std::vector<ExtendRequest> requests, Done<std::vector<ExtendReply>> done) override {
    put(&Store::extend, std::move(requests), std::move(done));
  }
  void settle(std::vector<SettleRequest> requests, Done<std::vector<SettleReply>> done) override {
    put(&Store::settle, std::move(requests), std::move(done));
  }
  void enqueue(std::vector<EnqueueRequest> requests, Done<std::vector<EnqueueReply>> done) override {
    put(&Store::enqueue, std::move(requests), std::move(done));
  }
  void take(TakeRequest request, Done<std::vector<Taken>> done) override {
    put(&Store::take, std::move(request), std::move(done));
  }
  void move(MoveRequest request, Done<MoveReply> done) override {
    put(&Store::move, std::move(request), std::move(done));
  }
  void sweep(std::uint32_t limit, Done<Swept> done) override { put(&Store::sweep, limit, std::move(done)); }
  void purge(Retention retention, std::uint32_t limit, Done<Swept> done) override {
    commands_.push_back([this, retention, limit, done = std::move(done)](Store& host) mutable {
      host.purge(retention, limit, later(std::move(done)));
    });
  }
  void note_duplicates(std::vector<DuplicateNote> notes, Done<std::monostate> done) override {
    put(&Store::note_duplicates, std::move(notes), std::move(done));
  }
  Result<std::optional<Run>> find(const std::optional<std::string>& tenant, RunId id) override {
    return pick().find(tenant, id);
  }
  Result<std::optional<Run>> find_latest(const KeyName& name) override { return pick().find_latest(name); }
  Result<Page> list(const ListQuery& query) override { return pick().list(query); }
  Result<std::optional<Duplicates>> find_duplicates(RunId id) override { return pick().find_duplicates(id); }
  Result<StoreStats> stats() override { return pick().stats(); }
  Instant now() override {
    Instant latest{};
    for (Store* host : hosts_) latest = std::max(latest, host->now());
    return latest;
  }
  std::optional<Instant> next_deadline() override {
    std::optional<Instant> first;
    for (Store* host : hosts_)
      if (const auto one = host->next_deadline(); one && (!first || *one < *first)) first = one;
    return first;
  }
  Result<DeadLetterPage> list_dead_letters(const DeadLetterQuery& query) override {
    return pick_unlocked().list_dead_letters(query);
  }
  Result<std::optional<DeadLetter>> find_dead_letter(const std::optional<std::string>& tenant, Uuid id) override {
    return pick_unlocked().find_dead_letter(tenant, id);
  }
  Result<std::vector<DeadLetterMember>> list_members(Uuid dead_letter, std::uint32_t limit,
                                                     MemberPosition after = {}) override {
    return pick_unlocked().list_members(dead_letter, limit, after);
  }
  Result<std::optional<DeadLetter>> acknowledge(const std::optional<std::string>& tenant, Uuid id,
                                                const std::string& actor) override {
    return pick_unlocked().acknowledge(tenant, id, actor);
  }
  Result<std::optional<DeadLetterActionReply>> act_on_dead_letter(const DeadLetterActionRequest& wish) override {
    return pick_unlocked().act_on_dead_letter(wish);
  }
  Result<std::monostate> add_token(const TokenRecord& token) override { return pick_unlocked().add_token(token); }
  Result<std::vector<TokenRecord>> list_tokens() override { return pick_unlocked().list_tokens(); }
  Result<bool> revoke_token(const std::string& id) override { return pick_unlocked().revoke_token(id); }

 private:
  class Answers {
   public:
    void add(std::move_only_function<void()> reply) {
      const std::lock_guard lock(mutex_);
      replies_.push_back(std::move(reply));
      is_there_.notify_one();
    }
    std::vector<std::move_only_function<void()>> wait_for(std::size_t count, std::chrono::milliseconds patience,
                                                          const std::function<void()>& unstick) {
      std::unique_lock lock(mutex_);
      const auto are_there = [&] { return replies_.size() == count; };
      if (!is_there_.wait_for(lock, patience, are_there)) {
        lock.unlock();
        unstick();
        lock.lock();
        is_there_.wait(lock, are_there);
      }
      return std::exchange(replies_, {});
    }

   private:
    std::mutex mutex_;
    std::condition_variable is_there_;
    std::vector<std::move_only_function<void()>> replies_;
  };

  // For a call that blocks, and so cannot wait for the next step.
  Store& pick_unlocked() {
    release_locks();
    return pick();
  }
  Store& pick() { return *hosts_[dice_ ? dice_->below(hosts_.size()) : 0]; }
  template <class T>
  Done<T> later(Done<T> done) {
    return [answers = answers_.get(), done = std::move(done)](Result<T> reply) mutable {
      answers->add([done = std::move(done), reply = std::move(reply)]() mutable { done(std::move(reply)); });
    };
  }
  template <class Request, class T>
  void put(auto verb, Request request, Done<T> done) {
    commands_.push_back([this, verb, request = std::move(request), done = std::move(done)](Store& host) mutable {
      (host.*verb)(std::move(request), later(std::move(done)));
    });
  }

  const std::vector<Store*> hosts_;
  Random* const dice_ = nullptr;
  std::vector<std::move_only_function<void(Store&)>> commands_;
  const std::unique_ptr<Answers> answers_ = std::make_unique<Answers>();
};

}  // namespace latchkey::sim
