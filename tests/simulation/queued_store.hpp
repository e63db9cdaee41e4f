// A store whose commands wait for step(), as SQLite's do: several are applied at one instant, and a crash loses those
// that waited. In front of a store that applies at once.
#pragma once

#include <functional>
#include <vector>

#include "store/store.hpp"

namespace latchkey::sim {

class QueuedStore final : public Store {
 public:
  explicit QueuedStore(Store& store) : store_(store) {}

  std::size_t step() {
    auto commands = std::exchange(commands_, {});
    // Callbacks come when all is applied.
    std::vector<std::move_only_function<void()>> replies;
    replies_ = &replies;
    for (auto& command : commands) command();
    replies_ = nullptr;
    for (auto& reply : replies) reply();
    return commands.size();
  }
  void crash() { commands_.clear(); }

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
    commands_.push_back([this, retention, limit, done = std::move(done)]() mutable {
      store_.purge(retention, limit, later(std::move(done)));
    });
  }
  void note_duplicates(std::vector<DuplicateNote> notes, Done<std::monostate> done) override {
    put(&Store::note_duplicates, std::move(notes), std::move(done));
  }
  Result<std::optional<Run>> find(const std::optional<std::string>& tenant, RunId id) override {
    return store_.find(tenant, id);
  }
  Result<std::optional<Run>> find_latest(const KeyName& name) override { return store_.find_latest(name); }
  Result<Page> list(const ListQuery& query) override { return store_.list(query); }
  Result<std::optional<Duplicates>> find_duplicates(RunId id) override { return store_.find_duplicates(id); }
  Result<Census> census() override { return store_.census(); }
  Instant now() override { return store_.now(); }
  std::optional<Instant> next_deadline() override { return store_.next_deadline(); }
  Records& records() override { return store_.records(); }

 private:
  template <class T>
  Done<T> later(Done<T> done) {
    return [this, done = std::move(done)](Result<T> reply) mutable {
      replies_->push_back([done = std::move(done), reply = std::move(reply)]() mutable { done(std::move(reply)); });
    };
  }
  template <class Request, class T>
  void put(auto verb, Request request, Done<T> done) {
    commands_.push_back([this, verb, request = std::move(request), done = std::move(done)]() mutable {
      (store_.*verb)(std::move(request), later(std::move(done)));
    });
  }

  Store& store_;
  std::vector<std::move_only_function<void()>> commands_;
  std::vector<std::move_only_function<void()>>* replies_ = nullptr;
};

}  // namespace latchkey::sim
