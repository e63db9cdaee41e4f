#include "api/waiters.hpp"

#include <gtest/gtest.h>

#include <future>

#include "store/memory/memory_store.hpp"

namespace latchkey::api {
namespace {

using namespace std::chrono_literals;

// Finds runs as they are told; everything else is the memory store's.
class TellingStore final : public Store {
 public:
  explicit TellingStore(Store& store) : store_(store) {}
  Result<std::optional<Run>> find(const std::optional<std::string>&, RunId) override { return on_find(); }

  void claim(ClaimRequest request, Done<ClaimReply> done) override {
    store_.claim(std::move(request), std::move(done));
  }
  void extend(std::vector<ExtendRequest> requests, Done<std::vector<ExtendReply>> done) override {
    store_.extend(std::move(requests), std::move(done));
  }
  void settle(std::vector<SettleRequest> requests, Done<std::vector<SettleReply>> done) override {
    store_.settle(std::move(requests), std::move(done));
  }
  void enqueue(std::vector<EnqueueRequest> requests, Done<std::vector<EnqueueReply>> done) override {
    store_.enqueue(std::move(requests), std::move(done));
  }
  void take(TakeRequest request, Done<std::vector<Taken>> done) override {
    store_.take(std::move(request), std::move(done));
  }
  void move(MoveRequest request, Done<MoveReply> done) override { store_.move(std::move(request), std::move(done)); }
  void sweep(std::uint32_t limit, Done<Swept> done) override { store_.sweep(limit, std::move(done)); }
  void purge(Retention retention, std::uint32_t limit, Done<Swept> done) override {
    store_.purge(retention, limit, std::move(done));
  }
  void note_duplicates(std::vector<DuplicateNote> notes, Done<std::monostate> done) override {
    store_.note_duplicates(std::move(notes), std::move(done));
  }
  Result<std::optional<Run>> find_latest(const KeyName& name) override { return store_.find_latest(name); }
  Result<Page> list(const ListQuery& query) override { return store_.list(query); }
  Result<std::optional<Duplicates>> find_duplicates(RunId id) override { return store_.find_duplicates(id); }
  Result<StoreStats> stats() override { return store_.stats(); }
  Instant now() override { return store_.now(); }
  std::optional<Instant> next_deadline() override { return store_.next_deadline(); }
  Records& records() override { return store_.records(); }

  std::function<std::optional<Run>()> on_find;

 private:
  Store& store_;
};

Run run_in(State state) {
  Run run;
  auto head = std::make_shared<RunHead>();
  head->id = make_uuid_v7(from_ms(1), 1, 1);
  run.head = std::move(head);
  run.state = std::move(state);
  return run;
}

TEST(Waiters, ANotificationIsNotLostWhileTheRunIsBeingRead) {
  SystemClock clock;
  SystemRandom random;
  MemoryStore memory(clock, random);
  TellingStore store(memory);
  const latchkey::Run running = run_in(Running{}), done = run_in(Completed{});
  Waiters* waiters = nullptr;
  int finds = 0;
  // The run settles, and says so, between the look and its answer.
  store.on_find = [&] {
    if (++finds > 1) return done;
    waiters->notify(running.id());
    return running;
  };
  std::promise<Status> woken;
  auto answer = woken.get_future();
  Waiters held(store, clock, 1h);  // nothing but the notification can wake it
  waiters = &held;
  held.add(std::nullopt, running.id(), 1h,
           [&](Result<std::optional<latchkey::Run>> run) { woken.set_value((*run)->status()); });
  ASSERT_EQ(answer.wait_for(20s), std::future_status::ready);
  EXPECT_EQ(answer.get(), Status::completed);
}

}  // namespace
}  // namespace latchkey::api
