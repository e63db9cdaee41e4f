// BlockingPool: threads for jobs that may block (lists, tokens, acknowledgements), so that the HTTP server's threads
// never block. Bounded: a job that finds its queue full is refused. Every job is done or refused, exactly once.
//
// One thread is enough for a local store. A remote store may block each job for a while; then each blocked job occupies
// one thread.
//
// Every tenant has its own queue. The next job comes from the queue with the fewest running jobs, in turn among equals.
// Two queues together never occupy all threads, and one queue never holds more than half of the waiting jobs. So a
// tenant with many slow jobs, or a slow /metrics, cannot block another tenant's jobs.
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
  std::string queue;
  std::move_only_function<void()> work;
  std::move_only_function<void(const Error&)> refuse;
};

class BlockingPool {
 public:
  explicit BlockingPool(unsigned threads, std::size_t waiting_max = 2000);
  ~BlockingPool() { close(); }

  // Any thread. Refused at once: OVERLOADED when too much waits, SHUTTING_DOWN when it is closed.
  void post(Job job);
  // Refuses the waiting jobs and every later one. Running jobs continue.
  void refuse_all();
  // Does the waiting jobs, refuses later ones, and joins the threads.
  void close();

 private:
  struct Queue {
    std::deque<Job> waiting;
    unsigned running = 0;
    std::uint64_t turn = 0;  // orders queues by when they last gave a job, or were created
  };
  using Queues = std::map<std::string, Queue>;

  void run();
  // Returns the end if no queue may give a job.
  Queues::iterator find_next();
  Job take(Queue& queue);
  void end(const std::string& queue);

  const std::size_t waiting_max_;
  const unsigned running_max_;  // per queue
  std::mutex mutex_;
  std::condition_variable changed_;
  Queues queues_;  // those with waiting or running jobs
  std::size_t waiting_ = 0;
  std::uint64_t turns_ = 0;
  bool closed_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace latchkey::api
