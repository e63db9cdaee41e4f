#include "store/ready_index.hpp"

#include <algorithm>
#include <queue>

#include "model/decide.hpp"

namespace latchkey {
namespace {

// Only jobs that wait for nothing but a worker.
const Queued* as_job(const Run& run) {
  return run.origin == Origin::enqueued && run.waiting_for == 0 ? run.as<Queued>() : nullptr;
}

}  // namespace

bool ReadyIndex::Ready::operator<(const Ready& other) const {
  if (priority != other.priority) return priority > other.priority;
  return std::pair(due_at, id) < std::pair(other.due_at, other.id);
}

void ReadyIndex::Lane::advance(Instant now) {
  while (!later.empty() && later.begin()->first.first <= now) {
    const auto& [when, priority] = *later.begin();
    ready.insert({priority, when.first, when.second});
    later.erase(later.begin());
  }
}

std::uint64_t* ReadyIndex::count_of(const Run& run) {
  if (run.as<Queued>()) return &open_.queued;
  if (run.as<Running>()) return &open_.running;
  return run.as<InDoubt>() ? &open_.in_doubt : nullptr;
}

StoreStats ReadyIndex::stats() const {
  StoreStats stats = open_;
  if (!doubts_.empty()) stats.doubt_since = doubts_.begin()->first;
  return stats;
}

void ReadyIndex::add(const Run& run) {
  if (std::uint64_t* const count = count_of(run)) *count += 1;
  if (const auto* doubt = run.as<InDoubt>()) doubts_.emplace(doubt->since, run.id());
  if (const auto deadline = latchkey::next_deadline(run)) deadlines_.emplace(*deadline, run.id());
  const Queued* job = as_job(run);
  if (!job) return;
  Lane& lane = lanes_[{run.head->function, run.head->tenant}];
  // What was due when it was made is due for good.
  if (job->due_at <= run.head->created_at) {
    lane.ready.insert(lane.ready.end(), {run.head->priority, job->due_at, run.id()});
  } else {
    lane.later.emplace(std::pair(job->due_at, run.id()), run.head->priority);
  }
  jobs_ += 1;
}

void ReadyIndex::remove(const Run& run) {
  if (std::uint64_t* const count = count_of(run)) *count -= 1;
  if (const auto* doubt = run.as<InDoubt>()) doubts_.erase({doubt->since, run.id()});
  if (const auto deadline = latchkey::next_deadline(run)) deadlines_.erase({*deadline, run.id()});
  const Queued* job = as_job(run);
  if (!job) return;
  const auto lane = lanes_.find(LaneName{run.head->function, run.head->tenant});
  if (lane == lanes_.end()) return;
  jobs_ -= lane->second.ready.erase({run.head->priority, job->due_at, run.id()}) +
           lane->second.later.erase({job->due_at, run.id()});
  if (lane->second.empty()) lanes_.erase(lane);
}

void ReadyIndex::clear() {
  lanes_.clear();
  deadlines_.clear();
  doubts_.clear();
  open_ = {};
  jobs_ = 0;
}

std::vector<ReadyIndex::Lane*> ReadyIndex::lanes_for(const TakeRequest& request) {
  std::vector<Lane*> found;
  for (const std::string& function : request.functions) {
    if (request.tenant) {
      if (const auto lane = lanes_.find(LaneName{function, *request.tenant}); lane != lanes_.end())
        found.push_back(&lane->second);
      continue;
    }
    for (auto lane = lanes_.lower_bound(LaneName{function, ""}); lane != lanes_.end() && lane->first.first == function;
         ++lane)
      found.push_back(&lane->second);
  }
  std::ranges::sort(found);
  found.erase(std::ranges::unique(found).begin(), found.end());
  return found;
}

std::vector<RunId> ReadyIndex::ready(const TakeRequest& request, Instant now) {
  using Head = std::pair<std::set<Ready>::const_iterator, Lane*>;
  const auto later_first = [](const Head& a, const Head& b) { return *b.first < *a.first; };
  std::priority_queue<Head, std::vector<Head>, decltype(later_first)> heads(later_first);
  for (Lane* lane : lanes_for(request)) {
    lane->advance(now);
    if (!lane->ready.empty()) heads.emplace(lane->ready.begin(), lane);
  }
  std::vector<RunId> ids;
  while (!heads.empty() && ids.size() < request.limit) {
    auto [at, lane] = heads.top();
    heads.pop();
    ids.push_back(at->id);
    if (++at != lane->ready.end()) heads.emplace(at, lane);
  }
  return ids;
}

std::vector<RunId> ReadyIndex::overdue(Instant now, std::uint32_t limit) const {
  std::vector<RunId> ids;
  for (const auto& [at, id] : deadlines_) {
    if (now < at || ids.size() == limit) break;
    ids.push_back(id);
  }
  return ids;
}

std::optional<Instant> ReadyIndex::next_deadline() const {
  if (deadlines_.empty()) return std::nullopt;
  return deadlines_.begin()->first;
}

}  // namespace latchkey
