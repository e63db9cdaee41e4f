// A server with nothing behind it, to measure http/ alone: `http_bench_server PORT [deferred]`, ends at a line on
// stdin. "deferred" answers from another thread, in batches, as a group commit does.
#include <condition_variable>
#include <cstdlib>
#include <iostream>
#include <mutex>
#include <string_view>
#include <thread>
#include <vector>

#include "http/server.hpp"

using namespace latchkey;

namespace {

class Batcher {
 public:
  ~Batcher() { thread_.request_stop(); }
  void add(http::Reply reply) {
    {
      const std::lock_guard lock(mutex_);
      waiting_.push_back(std::move(reply));
    }
    arrived_.notify_one();
  }

 private:
  void run(const std::stop_token& stop) {
    std::vector<http::Reply> batch;
    while (!stop.stop_requested()) {
      {
        std::unique_lock lock(mutex_);
        arrived_.wait(lock, stop, [&] { return !waiting_.empty(); });
        batch.swap(waiting_);
      }
      for (http::Reply& reply : batch) reply.send({.content_type = "text/plain", .body = "ok"});
      batch.clear();
    }
  }

  std::mutex mutex_;
  std::condition_variable_any arrived_;
  std::vector<http::Reply> waiting_;
  std::jthread thread_{[this](const std::stop_token& stop) { run(stop); }};
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  SystemClock clock;
  Batcher batcher;
  http::Handler handler = [](http::Request&, http::Reply reply) {
    reply.send({.content_type = "text/plain", .body = "ok"});
  };
  if (argc > 2 && std::string_view(argv[2]) == "deferred")
    handler = [&](http::Request&, http::Reply reply) { batcher.add(std::move(reply)); };
  auto server = http::Server::start({.port = static_cast<std::uint16_t>(std::atoi(argv[1]))}, handler, clock);
  if (!server) {
    std::cerr << to_string(server.error()) << '\n';
    return 1;
  }
  std::cin.get();
}
