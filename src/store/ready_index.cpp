#include "store/ready_index.hpp"

#include <algorithm>
#include <queue>

#include "model/decide.hpp"

namespace latchkey {
namespace {

// The queued state of a job that waits only for a worker; null for other runs.
const Queued* as_job(const Run& run) {
  return run.origin == Origin::enqueued && run.waiting_for == 0 ? run.as<Queued>() : nullptr;
}

}  // namespace

bool ReadyIndex::Ready::operator<(const Ready& other) const {
  if (priority != other.priority) return priority > other.priority;
  return std::pair(due_at, id) < std::pair(other.due_at, other.id);
}

void ReadyIndex::FunctionQueue::advance(Instant now) {
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
  FunctionQueue& queue = queues_[{run.head->function, run.head->tenant}];
  // A job that was due when it was created cannot become due later.
  if (job->due_at <= run.head->created_at) {
    queue.ready.insert(queue.ready.end(), {run.head->priority, job->due_at, run.id()});
  } else {
    queue.later.emplace(std::pair(job->due_at, run.id()), run.head->priority);
  }
  jobs_ += 1;
}

void ReadyIndex::remove(const Run& run) {
  if (std::uint64_t* const count = count_of(run)) *count -= 1;
  if (const auto* doubt = run.as<InDoubt>()) doubts_.erase({doubt->since, run.id()});
  if (const auto deadline = latchkey::next_deadline(run)) deadlines_.erase({*deadline, run.id()});
  const Queued* job = as_job(run);
  if (!job) return;
  const auto queue = queues_.find(QueueName{run.head->function, run.head->tenant});
  if (queue == queues_.end()) return;
  jobs_ -= queue->second.ready.erase({run.head->priority, job->due_at, run.id()}) +
           queue->second.later.erase({job->due_at, run.id()});
  if (queue->second.empty()) queues_.erase(queue);
}

void ReadyIndex::clear() {
  queues_.clear();
  deadlines_.clear();
  doubts_.clear();
  open_ = {};
  jobs_ = 0;
}

std::vector<ReadyIndex::FunctionQueue*> ReadyIndex::queues_for(const TakeRequest& request) {
  std::vector<FunctionQueue*> found;
  for (const std::string& function : request.functions) {
    if (request.tenant) {
      if (const auto queue = queues_.find(QueueName{function, *request.tenant}); queue != queues_.end())
        found.push_back(&queue->second);
      continue;
    }
    for (auto queue = queues_.lower_bound(QueueName{function, ""});
         queue != queues_.end() && queue->first.first == function; ++queue)
      found.push_back(&queue->second);
  }
  std::ranges::sort(found);
  found.erase(std::ranges::unique(found).begin(), found.end());
  return found;
}

std::vector<RunId> ReadyIndex::ready(const TakeRequest& request, Instant now) {
  using Head = std::pair<std::set<Ready>::const_iterator, FunctionQueue*>;
  const auto later_first = [](const Head& a, const Head& b) { return *b.first < *a.first; };
  std::priority_queue<Head, std::vector<Head>, decltype(later_first)> heads(later_first);
  for (FunctionQueue* queue : queues_for(request)) {
    queue->advance(now);
    if (!queue->ready.empty()) heads.emplace(queue->ready.begin(), queue);
  }
  std::vector<RunId> ids;
  while (!heads.empty() && ids.size() < request.limit) {
    auto [at, queue] = heads.top();
    heads.pop();
    ids.push_back(at->id);
    if (++at != queue->ready.end()) heads.emplace(at, queue);
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
