// Backroom: threads for what may take a while (lists, tokens, acknowledgements), so that the server's threads never
// block. Bounded: when too much waits, more is refused. Finishes what waits when it is destroyed.
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

namespace latchkey::api {

class Backroom {
 public:
  using Work = std::move_only_function<void()>;

  explicit Backroom(unsigned threads, std::size_t waiting_max = 1000);
  ~Backroom() { close(); }

  // Any thread. False, and the work is not taken, when too much waits or it is closed.
  bool post(Work& work);
  // Does what waits, then ends.
  void close();

 private:
  void run();

  const std::size_t waiting_max_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Work> waiting_;
  bool closed_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace latchkey::api
