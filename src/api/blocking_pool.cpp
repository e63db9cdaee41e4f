#include "api/blocking_pool.hpp"

#include <algorithm>
#include <tuple>

namespace latchkey::api {
namespace {

Error closed() { return {Code::SHUTTING_DOWN, "the server stops"}; }

}  // namespace

BlockingPool::BlockingPool(unsigned threads, std::size_t waiting_max)
    : waiting_max_(waiting_max), begun_max_(std::max((threads - 1) / 2, 1U)) {
  while (threads_.size() < threads) threads_.emplace_back([this] { run(); });
}

void BlockingPool::post(Job errand) {
  std::unique_lock lock(mutex_);
  const auto known = lines_.find(errand.line);
  const std::size_t ahead = known == lines_.end() ? 0 : known->second.waiting.size();
  if (closed_ || waiting_ >= waiting_max_ || ahead >= waiting_max_ / 2) {
    const Error why = closed_ ? closed() : Error{Code::OVERLOADED, "too many lists and changes wait"};
    lock.unlock();
    return errand.refuse(why);
  }
  Line& line = known == lines_.end() ? lines_[errand.line] : known->second;
  if (known == lines_.end()) line.turn = ++turns_;
  line.waiting.push_back(std::move(errand));
  waiting_ += 1;
  changed_.notify_one();
}

void BlockingPool::refuse_all() {
  std::deque<Job> refused;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    for (auto& [name, line] : lines_) std::ranges::move(std::exchange(line.waiting, {}), std::back_inserter(refused));
    waiting_ = 0;
  }
  changed_.notify_all();
  for (Job& errand : refused) errand.refuse(closed());
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
    auto next = lines_.end();
    changed_.wait(lock, [&] { return (next = find_next()) != lines_.end() || (closed_ && waiting_ == 0); });
    if (next == lines_.end()) return;
    Job errand = take(next->second);
    lock.unlock();
    errand.work();
    const std::string line = std::exchange(errand, {}).line;
    lock.lock();
    end(line);
  }
}

BlockingPool::Lines::iterator BlockingPool::find_next() {
  const auto rank = [](const Line& line) { return std::tuple(line.begun, line.turn); };
  auto best = lines_.end();
  for (auto at = lines_.begin(); at != lines_.end(); ++at) {
    const Line& line = at->second;
    if (line.waiting.empty() || line.begun >= begun_max_) continue;
    if (best == lines_.end() || rank(line) < rank(best->second)) best = at;
  }
  return best;
}

Job BlockingPool::take(Line& line) {
  Job errand = std::move(line.waiting.front());
  line.waiting.pop_front();
  line.begun += 1;
  line.turn = ++turns_;
  waiting_ -= 1;
  if (closed_ && waiting_ == 0) changed_.notify_all();  // those who have nothing to do any more
  return errand;
}

void BlockingPool::end(const std::string& name) {
  const auto at = lines_.find(name);
  at->second.begun -= 1;
  if (at->second.begun == 0 && at->second.waiting.empty()) lines_.erase(at);
  changed_.notify_one();  // its line may go on
}

}  // namespace latchkey::api
