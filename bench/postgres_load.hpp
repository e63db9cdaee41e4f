// The work that the rows of the PostgreSQL table are made of.
#pragma once

#include <mutex>
#include <semaphore>
#include <thread>

#include "bench.hpp"
#include "keying/key_hash.hpp"
#include "postgres_bench.hpp"

namespace latchkey::bench {

inline EnqueueRequest job_of(std::optional<std::uint64_t> key) {
  EnqueueRequest job;
  job.function = "bench";
  job.input.assign(100, 'i');
  if (!key) return job;
  job.key = key_text(*key);
  job.guard = Guard::once;
  job.key_hash = compute_key_hash(job.tenant, job.function, job.key);
  return job;
}

// Producers and workers with one batch of 500 in flight each, at most so many waiting.
class Jobs {
 public:
  static constexpr std::uint64_t kBatch = 500;
  static constexpr unsigned kProducers = 2, kWorkers = 4;

  Jobs(Store& store, std::uint64_t jobs, bool keyed, std::uint64_t first_key = 0, std::uint64_t waiting_max = ~0ULL)
      : store_(store), jobs_(jobs), keyed_(keyed), next_key_(first_key), waiting_max_(waiting_max) {}

  double run() {
    const auto start = Stopwatch::now();
    begin();
    done_.acquire();
    return static_cast<double>(settled_.load()) / seconds_since(start);
  }
  void begin() {
    working_ = kWorkers;
    for (unsigned i = 0; i < kProducers; ++i) enqueue();
    for (unsigned i = 0; i < kWorkers; ++i) take();
  }
  void stop() {
    jobs_ = 0;
    done_.acquire();
  }
  std::uint64_t settled() const { return settled_; }

 private:
  void enqueue() {
    if (enqueued_ - settled_ >= waiting_max_) {
      const std::lock_guard lock(mutex_);
      idle_producers_ += 1;
      return;
    }
    if (enqueued_.fetch_add(kBatch) >= jobs_) return;
    std::vector<EnqueueRequest> batch;
    batch.reserve(kBatch);
    for (std::uint64_t i = 0; i < kBatch; ++i)
      batch.push_back(job_of(keyed_ ? std::optional(next_key_++) : std::nullopt));
    store_.enqueue(std::move(batch), [this](Result<std::vector<EnqueueReply>> replies) {
      require(replies.has_value(), "an enqueue failed");
      enqueue();
    });
  }
  void take() {
    store_.take({.functions = {"bench"}, .limit = kBatch, .session = make_uuid_v7({}, 1, 1)},
                [this](Result<std::vector<Taken>> taken) {
                  require(taken.has_value(), "a take failed");
                  settle(*taken);
                });
  }
  void settle(const std::vector<Taken>& taken) {
    if (taken.empty()) {
      if (settled_.load() < jobs_) return take();
      if (--working_ == 0) done_.release();
      return;
    }
    std::vector<SettleRequest> endings;
    endings.reserve(taken.size());
    for (const Taken& one : taken) endings.push_back({.id = one.run.id(), .fence = one.fence, .ending = Complete{}});
    store_.settle(std::move(endings), [this](Result<std::vector<SettleReply>> replies) {
      require(replies.has_value(), "a settle failed");
      for (const SettleReply& reply : *replies)
        require(std::holds_alternative<Settled>(reply) && std::get<Settled>(reply).changed, "a job was not settled");
      settled_ += replies->size();
      unsigned producers = 0;
      {
        const std::lock_guard lock(mutex_);
        if (idle_producers_ > 0) producers = 1, idle_producers_ -= 1;
      }
      for (; producers > 0; --producers) enqueue();
      take();
    });
  }

  Store& store_;
  std::atomic<std::uint64_t> jobs_;
  const bool keyed_;
  std::atomic<std::uint64_t> next_key_;
  const std::uint64_t waiting_max_;
  std::mutex mutex_;
  unsigned idle_producers_ = 0;
  std::atomic<std::uint64_t> enqueued_{0}, settled_{0};
  std::atomic<unsigned> working_{0};
  std::binary_semaphore done_{0};
};

// 50 callers that enqueue one job at a time. With duplicates every second call repeats the key of 201 calls before.
class Singles {
 public:
  Singles(Store& store, bool duplicates, std::uint64_t first_key = 0)
      : store_(store), duplicates_(duplicates), first_key_(first_key) {}
  double run(double seconds) {
    constexpr unsigned kCallers = 50;
    left_ = kCallers;
    const auto start = Stopwatch::now();
    for (unsigned i = 0; i < kCallers; ++i) enqueue();
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    const std::uint64_t done = done_count_;
    const double rate = static_cast<double>(done) / seconds_since(start);
    closing_ = true;
    done_.acquire();
    return rate;
  }

 private:
  void enqueue() {
    if (closing_) {
      if (--left_ == 0) done_.release();
      return;
    }
    const std::uint64_t number = next_++;
    std::optional<std::uint64_t> key;
    if (duplicates_) key = number % 2 == 1 && number > 201 ? number - 201 : number;
    if (key) *key += first_key_;
    std::vector<EnqueueRequest> one;
    one.push_back(job_of(key));
    store_.enqueue(std::move(one), [this](Result<std::vector<EnqueueReply>> replies) {
      require(replies.has_value(), "an enqueue failed");
      ++done_count_;
      enqueue();
    });
  }

  Store& store_;
  const bool duplicates_;
  const std::uint64_t first_key_;
  std::atomic<std::uint64_t> next_{0}, done_count_{0};
  std::atomic<bool> closing_{false};
  std::atomic<unsigned> left_{0};
  std::binary_semaphore done_{0};
};

}  // namespace latchkey::bench
