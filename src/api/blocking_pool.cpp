#include "api/blocking_pool.hpp"

#include <algorithm>
#include <tuple>

namespace latchkey::api {
namespace {

Error closed() { return {Code::SHUTTING_DOWN, "the server is stopping"}; }

}  // namespace

BlockingPool::BlockingPool(unsigned threads, std::size_t waiting_max)
    : waiting_max_(waiting_max), running_max_(std::max((threads - 1) / 2, 1U)) {
  while (threads_.size() < threads) threads_.emplace_back([this] { run(); });
}

void BlockingPool::post(Job job) {
  std::unique_lock lock(mutex_);
  const auto known = queues_.find(job.queue);
  const std::size_t ahead = known == queues_.end() ? 0 : known->second.waiting.size();
  if (closed_ || waiting_ >= waiting_max_ || ahead >= waiting_max_ / 2) {
    const Error why = closed_ ? closed() : Error{Code::OVERLOADED, "too many requests wait for the store"};
    lock.unlock();
    return job.refuse(why);
  }
  Queue& queue = known == queues_.end() ? queues_[job.queue] : known->second;
  if (known == queues_.end()) queue.turn = ++turns_;
  queue.waiting.push_back(std::move(job));
  waiting_ += 1;
  changed_.notify_one();
}

void BlockingPool::refuse_all() {
  std::deque<Job> refused;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    for (auto& [name, queue] : queues_)
      std::ranges::move(std::exchange(queue.waiting, {}), std::back_inserter(refused));
    waiting_ = 0;
  }
  changed_.notify_all();
  for (Job& job : refused) job.refuse(closed());
}

void BlockingPool::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_)
    if (thread.joinable()) thread.join();
}

void BlockingPool::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    auto next = queues_.end();
    changed_.wait(lock, [&] { return (next = find_next()) != queues_.end() || (closed_ && waiting_ == 0); });
    if (next == queues_.end()) return;
    Job job = take(next->second);
    lock.unlock();
    job.work();
    const std::string queue = std::exchange(job, {}).queue;
    lock.lock();
    end(queue);
  }
}

BlockingPool::Queues::iterator BlockingPool::find_next() {
  const auto rank = [](const Queue& queue) { return std::tuple(queue.running, queue.turn); };
  auto best = queues_.end();
  for (auto at = queues_.begin(); at != queues_.end(); ++at) {
    const Queue& queue = at->second;
    if (queue.waiting.empty() || queue.running >= running_max_) continue;
    if (best == queues_.end() || rank(queue) < rank(best->second)) best = at;
  }
  return best;
}

Job BlockingPool::take(Queue& queue) {
  Job job = std::move(queue.waiting.front());
  queue.waiting.pop_front();
  queue.running += 1;
  queue.turn = ++turns_;
  waiting_ -= 1;
  if (closed_ && waiting_ == 0) changed_.notify_all();  // idle threads can end
  return job;
}

void BlockingPool::end(const std::string& name) {
  const auto at = queues_.find(name);
  at->second.running -= 1;
  if (at->second.running == 0 && at->second.waiting.empty()) queues_.erase(at);
  changed_.notify_one();  // the queue may give its next job
}

}  // namespace latchkey::api
