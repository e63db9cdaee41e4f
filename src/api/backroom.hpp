// Backroom: threads for what may take a while (lists, tokens, acknowledgements), so that the server's threads never
// block. Bounded: when too much waits, more is refused. Every errand is done or refused, once.
//
// One thread will do where nothing takes long. Where something may wait for a server elsewhere, what waits takes one
// thread each, and as many may wait before they hold up the rest.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "base/error.hpp"

namespace latchkey::api {

struct Errand {
  std::move_only_function<void()> work;
  std::move_only_function<void(const Error&)> refuse;
};

class Backroom {
 public:
  explicit Backroom(unsigned threads, std::size_t waiting_max = 1000);
  ~Backroom() { close(); }

  // Any thread. Refused at once: TOO_MANY_REQUESTS when too much waits, SHUTTING_DOWN when it is closed.
  void post(Errand errand);
  // Refuses what has not begun, and from now on everything; what has begun goes on.
  void refuse_all();
  // Does what waits, then ends.
  void close();

 private:
  void run();

  const std::size_t waiting_max_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Errand> waiting_;
  bool closed_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace latchkey::api
