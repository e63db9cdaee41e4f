#include "api/backroom.hpp"

namespace latchkey::api {

Backroom::Backroom(unsigned threads, std::size_t waiting_max) : waiting_max_(waiting_max) {
  while (threads_.size() < threads) threads_.emplace_back([this] { run(); });
}

bool Backroom::post(Work& work) {
  {
    const std::lock_guard lock(mutex_);
    if (closed_ || waiting_.size() >= waiting_max_) return false;
    waiting_.push_back(std::move(work));
  }
  changed_.notify_one();
  return true;
}

void Backroom::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_)
    if (thread.joinable()) thread.join();
}

void Backroom::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return closed_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    Work work = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    work();
    work = nullptr;
    lock.lock();
  }
}

}  // namespace latchkey::api
