// ReadyIndex: the ready jobs in the order in which they are taken, and the deadlines of open runs.
// It is an index in memory, derived from the runs; a back end rebuilds it when it opens. Not safe from two threads.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "model/requests.hpp"
#include "model/run.hpp"
#include "store/stats.hpp"

namespace latchkey {

class ReadyIndex {
 public:
  // Adds an open run; a settled run is ignored.
  void add(const Run& run);
  // Removes a run that was added in exactly this state.
  void remove(const Run& run);
  void clear();

  // Due jobs in order: highest priority first, then longest due, then oldest.
  std::vector<RunId> ready(const TakeRequest& request, Instant now);
  std::vector<RunId> overdue(Instant now, std::uint32_t limit) const;
  std::optional<Instant> next_deadline() const;
  std::size_t jobs() const { return jobs_; }
  // Without the count of dead letters, which the index does not have.
  StoreStats stats() const;

 private:
  struct Ready {
    std::int32_t priority;
    Instant due_at;
    RunId id;
    bool operator<(const Ready& other) const;
  };
  // The jobs of one function of one tenant. advance() moves a job from `later`, which is ordered by due time, to
  // `ready` when it is due.
  struct FunctionQueue {
    std::set<Ready> ready;
    std::map<std::pair<Instant, RunId>, std::int32_t> later;
    void advance(Instant now);
    bool empty() const { return ready.empty() && later.empty(); }
  };
  using QueueName = std::pair<std::string, std::string>;  // function, tenant

  std::vector<FunctionQueue*> queues_for(const TakeRequest& request);
  // The counter of the run's state; null for a settled run.
  std::uint64_t* count_of(const Run& run);

  std::map<QueueName, FunctionQueue, std::less<>> queues_;
  std::set<std::pair<Instant, RunId>> deadlines_;
  std::set<std::pair<Instant, RunId>> doubts_;  // by the time at which the doubt began
  StoreStats open_;
  std::size_t jobs_ = 0;
};

}  // namespace latchkey
