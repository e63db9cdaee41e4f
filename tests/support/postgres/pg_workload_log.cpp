#include "support/postgres/pg_workload_log.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "conformance/await.hpp"
#include "support/sample_runs.hpp"

namespace latchkey {
namespace {

constexpr std::uint64_t kContended = 6;  // the number of keys that all callers claim
constexpr Duration kLease = std::chrono::hours{1};

}  // namespace

// One caller. Its seed determines its actions.
class WorkloadLog::Caller {
 public:
  Caller(WorkloadLog& log, int number)
      : log_(log), random_(log.seed_ * 1000 + static_cast<std::uint64_t>(number)), name_(std::to_string(number)) {}

  void act() {
    store_ = log_.stores_[random_.below(log_.stores_.size())];
    switch (random_.below(8)) {
      case 0:
        return enqueue_some(1 + random_.below(4));
      case 1:
        return enqueue_named();
      case 2:
        return enqueue_with_key();
      case 3:
        return cancel_one();
      case 4:
        return claim_contended();
      case 5:
        return claim_own();
      default:
        return take_some();
    }
  }

 private:
  template <class T, class Call>
  std::optional<T> ask(Call call) {
    Result<T> result = await_result<T>([&](auto done) { call(*store_, std::move(done)); });
    {
      const std::lock_guard lock(log_.mutex_);
      ++(result ? log_.acknowledged_ : log_.rejected_);
    }
    log_.replied_.notify_all();
    if (!result) {
      EXPECT_EQ(result.error().code, Code::STORE_UNAVAILABLE) << to_string(result.error());
      return std::nullopt;
    }
    return *std::move(result);
  }
  // Repeats the call until it succeeds. A rejected call has changed nothing.
  template <class T, class Call>
  T retry_until_done(Call call) {
    while (true)
      if (auto answer = ask<T>(call)) return *std::move(answer);
  }
  std::optional<std::vector<EnqueueReply>> enqueue(const std::vector<EnqueueRequest>& requests) {
    return ask<std::vector<EnqueueReply>>([&](Store& store, auto done) { store.enqueue(requests, std::move(done)); });
  }
  SettleReply settle(const Won& won, const Ending& ending) {
    return retry_until_done<std::vector<SettleReply>>([&](Store& store, auto done) {
             store.settle({SettleRequest{{}, won.run.id(), won.fence, ending}}, std::move(done));
           })
        .at(0);
  }
  std::string next_name() { return name_ + ":" + std::to_string(++count_); }
  ClaimId next_claim() { return id_of(random_.next()); }

  EnqueueRequest job() {
    EnqueueRequest request;
    request.function = "f";
    request.input = next_name();
    request.lease = kLease;
    request.retry.retries = 1000;
    return request;
  }
  static const Enqueued* made(const EnqueueReply& reply) {
    const auto* enqueued = std::get_if<Enqueued>(&reply);
    EXPECT_TRUE(enqueued);
    if (enqueued) EXPECT_FALSE(enqueued->duplicate) << enqueued->run.head->input << " is a duplicate of itself";
    return enqueued;
  }
  void note(const std::vector<EnqueueRequest>& requests, const std::optional<std::vector<EnqueueReply>>& replies) {
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const Enqueued* one = replies ? made(replies->at(i)) : nullptr;
      log_.note_job(requests[i].input, one ? std::optional(one->run.id()) : std::nullopt);
    }
  }

  // These jobs have no key and no claim id, so only the store can distinguish a repeated batch from another call.
  void enqueue_some(std::uint64_t count) {
    std::vector<EnqueueRequest> requests;
    for (std::uint64_t i = 0; i < count; ++i) requests.push_back(job());
    note(requests, enqueue(requests));
  }
  void enqueue_named() {
    EnqueueRequest request = job();
    request.claim = next_claim();
    const auto replies = enqueue({request});
    note({request}, replies);
    if (!replies || !random_.one_in(2)) return;
    if (const auto again = enqueue({request})) {
      EXPECT_EQ(std::get<Enqueued>(again->at(0)).run.id(), std::get<Enqueued>(replies->at(0)).run.id());
    }
  }
  void enqueue_with_key() {
    EnqueueRequest request = a_job(next_name());
    request.input = request.key;
    request.lease = kLease;
    request.retry.retries = 1000;
    const auto replies = enqueue({request});
    note({request}, replies);
    if (!replies || !random_.one_in(2)) return;
    if (const auto again = enqueue({request})) {
      const auto& duplicate = std::get<Enqueued>(again->at(0));
      EXPECT_EQ(duplicate.run.id(), std::get<Enqueued>(replies->at(0)).run.id());
      EXPECT_TRUE(duplicate.duplicate);
    }
  }
  void cancel_one() {
    EnqueueRequest request = job();
    request.function = "m";
    const auto replies = enqueue({request});
    note({request}, replies);
    if (!replies) return;
    const RunId id = std::get<Enqueued>(replies->at(0)).run.id();
    for (const bool changes : {true, false}) {
      const auto reply = retry_until_done<MoveReply>(
          [&](Store& store, auto done) { store.move({{}, id, CancelByHand{}}, std::move(done)); });
      const auto* moved = std::get_if<Moved>(&reply);
      ASSERT_TRUE(moved) << to_string(std::get<Error>(reply));
      EXPECT_EQ(moved->changed, changes);
      if (changes) log_.note_settled(moved->run, Status::cancelled, "");
    }
  }

  void claim_contended() {
    ClaimRequest request = a_claim("all:" + std::to_string(random_.below(kContended)));
    request.function = "c";
    request.key_hash = hash_key("default", "c", request.key);
    request.lease = kLease;
    request.retry.retries = 1'000'000;
    if (random_.one_in(2)) request.claim = next_claim();
    const auto reply = ask<ClaimReply>([&](Store& store, auto done) { store.claim(request, std::move(done)); });
    if (!reply) return;
    const auto* won = std::get_if<Won>(&*reply);
    if (!won) {
      EXPECT_TRUE(std::holds_alternative<Busy>(*reply)) << "the last owner released the run";
      return;
    }
    log_.note_won(request.key, *won);
    const SettleReply settled = settle(*won, Release{});
    if (log_.was_lost(settled)) return;
    const auto* released = std::get_if<Settled>(&settled);
    ASSERT_TRUE(released) << to_string(std::get<Error>(settled));
  }
  void claim_own() {
    ClaimRequest request = a_claim("own:" + next_name());
    request.function = "c";
    request.key_hash = hash_key("default", "c", request.key);
    request.input = request.key;
    request.lease = kLease;
    if (random_.one_in(2)) request.claim = next_claim();
    const auto reply = ask<ClaimReply>([&](Store& store, auto done) { store.claim(request, std::move(done)); });
    const auto* won = reply ? std::get_if<Won>(&*reply) : nullptr;
    log_.note_job(request.input, won ? std::optional(won->run.id()) : std::nullopt);
    if (!reply) return;
    ASSERT_TRUE(won) << "no other caller claims " << request.key;
    EXPECT_FALSE(won->repeated);
    log_.note_taken(*won);
    finish(*won);
  }

  void take_some() {
    const TakeRequest request{.functions = {"f"}, .limit = 3, .session = id_of(log_.seed_)};
    const auto taken = ask<std::vector<Taken>>([&](Store& store, auto done) { store.take(request, std::move(done)); });
    if (!taken) return;
    for (const Taken& one : *taken) log_.note_taken(one);
    for (const Taken& one : *taken)
      if (!random_.one_in(8)) finish(one);
  }
  // The store accepts one settlement, also if its reply is lost. The same settlement again changes nothing.
  void finish(const Won& won) {
    const std::string result = name_ + " settled " + std::to_string(static_cast<std::uint64_t>(won.fence));
    Ending ending = Complete{result, {}};
    std::optional<Status> status = Status::completed;
    const bool may_be_opened_again = won.run.head->function == "f" && !won.run.head->key.empty();
    if (!may_be_opened_again && random_.one_in(6)) {
      ending = Fail{.message = result, .code = "E_NEVER", .retryable = false};
      status = Status::failed;
    } else if (won.run.head->function == "f" && random_.one_in(6)) {
      ending = Release{};
      status.reset();
    }
    const SettleReply first = settle(won, ending);
    if (log_.was_lost(first)) return;
    const auto* settled = std::get_if<Settled>(&first);
    ASSERT_TRUE(settled) << to_string(std::get<Error>(first));
    EXPECT_TRUE(settled->changed) << won.run.head->input << " was settled before";
    if (!status) return;
    log_.note_settled(settled->run, *status, *status == Status::completed ? result : "");
    if (!random_.one_in(3)) return;
    const SettleReply again = settle(won, ending);
    ASSERT_TRUE(std::holds_alternative<Settled>(again));
    EXPECT_FALSE(std::get<Settled>(again).changed);
  }

  WorkloadLog& log_;
  SeededRandom random_;
  const std::string name_;
  Store* store_ = nullptr;
  int count_ = 0;
};

bool WorkloadLog::wait_for_replies(std::uint64_t acknowledged, std::chrono::seconds limit) {
  std::unique_lock lock(mutex_);
  return replied_.wait_for(lock, limit, [&] { return acknowledged_ >= acknowledged; });
}

void WorkloadLog::run(int threads, const std::function<bool()>& enough) {
  std::vector<std::jthread> callers;
  for (int i = 0; i < threads; ++i)
    callers.emplace_back([&, i] {
      Caller caller(*this, i);
      try {
        while (!enough()) caller.act();
      } catch (const std::exception& problem) {
        ADD_FAILURE() << "caller " << i << ": " << problem.what();
      }
    });
}

void WorkloadLog::note_fence(Fence fence) {
  EXPECT_TRUE(fences_.insert(fence).second) << "fence " << static_cast<std::uint64_t>(fence) << " was drawn twice";
}

void WorkloadLog::note_job(const std::string& input, std::optional<RunId> id) {
  const std::lock_guard lock(mutex_);
  jobs_[input].id = id;
  if (id) EXPECT_TRUE(inputs_.emplace(*id, input).second) << input << " shares a run with " << inputs_[*id];
}

void WorkloadLog::note_taken(const Taken& taken) {
  const std::lock_guard lock(mutex_);
  Job& job = jobs_[taken.run.head->input];
  note_fence(taken.fence);
  EXPECT_GT(taken.fence, job.fence) << taken.run.head->input;
  EXPECT_FALSE(job.settled) << taken.run.head->input << " was taken after it was settled";
  job.fence = taken.fence;
  job.taken += 1;
  EXPECT_EQ(taken.run.attempts_total, job.taken) << taken.run.head->input << ": no caller got the reply to an attempt";
}

bool WorkloadLog::was_lost(const SettleReply& reply) const {
  const auto* error = std::get_if<Error>(&reply);
  return leases_may_be_lost_ && error && error->code == Code::LEASE_LOST;
}

void WorkloadLog::note_settled(const Run& run, Status status, const std::string& result) {
  const std::lock_guard lock(mutex_);
  Job& job = jobs_[run.head->input];
  EXPECT_FALSE(job.settled) << run.head->input << " was settled twice";
  job.settled = status;
  job.result = result;
}

void WorkloadLog::note_won(const std::string& key, const Won& won) {
  const std::lock_guard lock(mutex_);
  note_fence(won.fence);
  EXPECT_GT(won.fence, won_[key]) << key;
  won_[key] = won.fence;
}

void WorkloadLog::check(Store& truth) {
  while (true) {
    const auto rest = await<std::vector<Taken>>([&](auto done) {
      truth.take({.functions = {"f"}, .limit = 100, .session = id_of(1), .lease = kLease}, std::move(done));
    });
    if (rest.empty()) break;
    for (const Taken& one : rest) note_taken(one);
  }
  std::map<std::string, std::vector<Run>> found;
  for (ListQuery query{.limit = 500};;) {
    Page page = truth.list(query).value();
    for (Run& run : page.runs) found[run.head->input].push_back(std::move(run));
    if (page.next.empty()) break;
    query.cursor = page.next;
  }
  found.erase("");  // the contended keys
  for (const auto& [input, job] : jobs_) {
    const auto& runs = found[input];
    ASSERT_EQ(runs.size(), job.id ? 1u : 0u) << input << (job.id ? " was acknowledged" : " was rejected");
    if (!job.id) continue;
    const Run& run = runs.front();
    EXPECT_EQ(run.id(), *job.id) << input;
    EXPECT_EQ(run.attempts_total, job.taken) << input << ": no caller got the reply to an attempt";
    EXPECT_EQ(run.fence, job.fence) << input;
    if (!job.settled) continue;
    EXPECT_EQ(run.status(), *job.settled) << input;
    if (const auto* completed = run.as<Completed>()) EXPECT_EQ(completed->result, job.result) << input;
  }
  for (const auto& [input, runs] : found)
    EXPECT_TRUE(jobs_.contains(input)) << "no caller created " << input << ", and it has " << runs.size() << " runs";
}

}  // namespace latchkey
