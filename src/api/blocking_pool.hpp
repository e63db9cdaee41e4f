// BlockingPool: threads for what may take a while (lists, tokens, acknowledgements), so that the server's threads never
// block. Bounded: when too much waits, more is refused. Every errand is done or refused, once.
//
// One thread will do where nothing takes long. Where something may wait for a server elsewhere, what waits takes one
// thread each, and as many may wait before they hold up the rest.
//
// Errands wait in lines, one for each tenant. The line with the fewest under way is next, in turn among equals; no two
// together have all of the threads, and none more than half of the places to wait: however slow the errands of one
// tenant are, and the metrics, and however many, another's go through.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/error.hpp"

namespace latchkey::api {

struct Job {
  std::string line;
  std::move_only_function<void()> work;
  std::move_only_function<void(const Error&)> refuse;
};

class BlockingPool {
 public:
  explicit BlockingPool(unsigned threads, std::size_t waiting_max = 2000);
  ~BlockingPool() { close(); }

  // Any thread. Refused at once: OVERLOADED when too much waits, SHUTTING_DOWN when it is closed.
  void post(Job errand);
  // Refuses what has not begun, and from now on everything; what has begun goes on.
  void refuse_all();
  // Does what waits, then ends.
  void close();

 private:
  struct Line {
    std::deque<Job> waiting;
    unsigned begun = 0;
    std::uint64_t turn = 0;  // when it came, or was last next
  };
  using Lines = std::map<std::string, Line>;

  void run();
  // The end when there is none.
  Lines::iterator find_next();
  Job take(Line& line);
  void end(const std::string& line);

  const std::size_t waiting_max_;
  const unsigned begun_max_;  // of one line
  std::mutex mutex_;
  std::condition_variable changed_;
  Lines lines_;  // with somebody in them
  std::size_t waiting_ = 0;
  std::uint64_t turns_ = 0;
  bool closed_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace latchkey::api
