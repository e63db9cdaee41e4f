#include "api/backroom.hpp"

namespace latchkey::api {
namespace {

Error closed() { return {Code::SHUTTING_DOWN, "the server stops"}; }

}  // namespace

Backroom::Backroom(unsigned threads, std::size_t waiting_max) : waiting_max_(waiting_max) {
  while (threads_.size() < threads) threads_.emplace_back([this] { run(); });
}

void Backroom::post(Errand errand) {
  std::unique_lock lock(mutex_);
  if (!closed_ && waiting_.size() < waiting_max_) {
    waiting_.push_back(std::move(errand));
    changed_.notify_one();
    return;
  }
  const Error why = closed_ ? closed() : Error{Code::TOO_MANY_REQUESTS, "too many lists and changes wait"};
  lock.unlock();
  errand.refuse(why);
}

void Backroom::refuse_all() {
  std::deque<Errand> refused;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    refused.swap(waiting_);
  }
  changed_.notify_all();
  for (Errand& errand : refused) errand.refuse(closed());
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
    Errand errand = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    errand.work();
    errand = {};
    lock.lock();
  }
}

}  // namespace latchkey::api
