// ReadyIndex: what is to be done with open runs and when: jobs to be taken, in order, and deadlines to be swept.
// An index in memory, derived from the runs; a back end rebuilds it when it opens. Not safe from two threads.
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
  // Takes in an open run; a settled one is passed over.
  void add(const Run& run);
  // Forgets a run that was added in exactly this state.
  void remove(const Run& run);
  void clear();

  // Due jobs in order: highest priority, then longest due, then oldest.
  std::vector<RunId> ready(const TakeRequest& request, Instant now);
  std::vector<RunId> overdue(Instant now, std::uint32_t limit) const;
  std::optional<Instant> next_deadline() const;
  std::size_t jobs() const { return jobs_; }
  // All but the dead letters, which are not here.
  StoreStats stats() const;

 private:
  struct Ready {
    std::int32_t priority;
    Instant due_at;
    RunId id;
    bool operator<(const Ready& other) const;
  };
  // One function of one tenant. A job lies in `ready` once it was seen to be due, else in `later`, by due time.
  struct Lane {
    std::set<Ready> ready;
    std::map<std::pair<Instant, RunId>, std::int32_t> later;
    void advance(Instant now);
    bool empty() const { return ready.empty() && later.empty(); }
  };
  using LaneName = std::pair<std::string, std::string>;  // function, tenant

  std::vector<Lane*> lanes_for(const TakeRequest& request);
  // The count of the state that the run is in; none when it is settled.
  std::uint64_t* count_of(const Run& run);

  std::map<LaneName, Lane, std::less<>> lanes_;
  std::set<std::pair<Instant, RunId>> deadlines_;
  std::set<std::pair<Instant, RunId>> doubts_;  // since when
  StoreStats open_;
  std::size_t jobs_ = 0;
};

}  // namespace latchkey
