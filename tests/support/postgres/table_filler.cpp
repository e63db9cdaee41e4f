#include "support/postgres/query_plan_driver.hpp"
#include "support/sample_runs.hpp"

namespace latchkey {

using namespace std::chrono_literals;

namespace {

constexpr int kFillBatch = 500;

}  // namespace

std::vector<EnqueueRequest> jobs_of(const std::string& function, int count, const std::string& key,
                                    const std::string& tenant) {
  std::vector<EnqueueRequest> jobs(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    EnqueueRequest& job = jobs[static_cast<std::size_t>(i)];
    job.tenant = tenant;
    job.function = function;
    job.input = "some input";
    job.lease = 1h;
    if (key.empty()) continue;
    job.key = key + std::to_string(i);
    job.key_hash = hash_key(tenant, function, job.key);
    job.guard = Guard::once;
  }
  return jobs;
}

std::vector<EnqueueRequest> single_jobs_of(const std::string& function, const std::string& other, int count) {
  auto jobs = jobs_of(function, 2 * count);
  for (std::size_t i = 0; i < jobs.size(); i += 2) jobs[i].function = other;
  return jobs;
}

std::vector<Run> enqueue_jobs(Store& store, const std::vector<EnqueueRequest>& jobs) {
  const auto replies = await<std::vector<EnqueueReply>>([&](auto done) { store.enqueue(jobs, std::move(done)); });
  std::vector<Run> runs;
  for (const EnqueueReply& reply : replies) runs.push_back(std::get<Enqueued>(reply).run);
  return runs;
}

std::vector<Taken> take_jobs(Store& store, std::vector<std::string> functions, int limit,
                             std::optional<std::string> tenant) {
  return await<std::vector<Taken>>([&](auto done) {
    store.take({.tenant = std::move(tenant),
                .functions = std::move(functions),
                .limit = static_cast<std::uint32_t>(limit),
                .session = id_of(1)},
               std::move(done));
  });
}

std::vector<SettleReply> settle_jobs(Store& store, const std::vector<Taken>& taken, const Ending& ending) {
  std::vector<SettleRequest> requests;
  for (const Taken& one : taken) requests.push_back({{}, one.run.id(), one.fence, ending});
  auto replies = await<std::vector<SettleReply>>([&](auto done) { store.settle(requests, std::move(done)); });
  for (const SettleReply& reply : replies)
    if (const auto* error = std::get_if<Error>(&reply)) throw std::runtime_error(to_string(*error));
  return replies;
}

std::vector<Taken> TableFiller::take(const std::string& function) { return take_jobs(store_, {function}, kFillBatch); }

void TableFiller::settle(const std::vector<Taken>& taken, const Ending& ending) { settle_jobs(store_, taken, ending); }

void TableFiller::fill_history(int count) {
  const int size = std::min(count, kFillBatch);
  for (int made = 0; made < count; made += size) {
    // Half of the batches have keys, so that there are as many keys as runs of one kind.
    const auto key = [&](bool with) { return with ? std::to_string(count) + "." + std::to_string(made) + "/" : ""; };
    const bool with = made / size % 2 == 0;
    enqueue_jobs(store_, jobs_of("done", size, key(true)));
    settle(take("done"), Complete{"a result", {}});
    enqueue_jobs(store_, jobs_of("work", size, key(with)));
    settle(take("work"), Fail{.message = "not now", .code = "E_LATER", .retry_after = 10h});
    auto tried = jobs_of("tried", size, key(with));
    for (EnqueueRequest& job : tried) job.lease = 10h;
    enqueue_jobs(store_, tried);
    settle(take("tried"), Release{});
    take("tried");
    enqueue_jobs(store_, jobs_of("dead", size, key(with)));
    settle(take("dead"), Fail{.message = "never", .code = "E_NEVER", .retryable = false});
  }
}

void TableFiller::fill_blocks(int count) {
  const int size = std::min(count, kFillBatch);
  for (int made = 0; made < count; made += size) {
    // Neighbours with different priorities do not share a block.
    const auto make = [&](const std::string& function, const std::string& tenant, Duration delay) {
      auto jobs = jobs_of(function, size, "", tenant);
      for (std::size_t i = 0; i < jobs.size(); ++i) jobs[i].priority = static_cast<std::int32_t>(i % 2);
      for (std::size_t i = 0; i < jobs.size(); ++i) jobs[i].delay = delay;
      for (EnqueueRequest& job : jobs) job.lease = 10h;
      enqueue_jobs(store_, jobs);
    };
    make("leased", "default", 0ms);
    take("leased");
    make("busy", "default", 0ms);
    make("work", "default", 10h + Duration{made});
    make("work", "another", 10h + Duration{made});
  }
}

void TableFiller::churn_blocks(int count) {
  for (int made = 0; made < count; made += kFillBatch) {
    enqueue_jobs(store_, single_jobs_of("work", "play", kFillBatch / 2));
    settle(take("work"), Complete{"", {}});
    settle(take("play"), Complete{"", {}});
  }
}

}  // namespace latchkey
