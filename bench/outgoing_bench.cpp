// The outgoing client alone: `outgoing_bench URL CONNECTIONS CALLS [CA_FILE]` always has as many calls in flight as
// connections. Compare with `wrk -t1 -cCONNECTIONS URL`.
#include <atomic>
#include <cstdlib>
#include <semaphore>

#include "bench.hpp"
#include "http/outgoing_client.hpp"

using namespace latchkey;

namespace {

class Load {
 public:
  Load(http::OutgoingClient& client, std::string url, int calls)
      : client_(client), url_(std::move(url)), left_(calls) {}

  // Only the first calls are started by another thread than the client's.
  void start_next() {
    if (left_-- <= 0) return;
    const auto started = bench::Stopwatch::now();
    open_ += 1;
    client_.start({.url = url_,
                   .headers = {{"Content-Type", "application/json"},
                               {"Idempotency-Key", "0198f3a2-7c1e-7b3a-9d52-6f1f0a4b2c3d"},
                               {"Latchkey-Run", "0198f3a2-7c1e-7b3a-9d52-6f1f0a4b2c3d"},
                               {"Latchkey-Attempt", "1"},
                               {"Latchkey-Fence", "123456"}},
                   .body = R"({"order":7,"cents":1999})"},
                  [this, started](http::OutgoingResult result) { on_result(result, started); });
  }
  // Waits for the last result.
  void wait() {
    if (--open_ != 0) done_.acquire();
  }
  void print(double seconds) {
    std::printf(R"({"calls_per_second": %.0f, "failed": %d, "p50_us": %.0f, "p99_us": %.0f})"
                "\n",
                static_cast<double>(latencies_.size()) / seconds, failed_, bench::percentile(latencies_, 0.5),
                bench::percentile(latencies_, 0.99));
  }

 private:
  void on_result(const http::OutgoingResult& result, bench::Stopwatch::time_point started) {
    const auto* const response = std::get_if<http::OutgoingResponse>(&result);
    if (response == nullptr || response->status != 200) failed_ += 1;
    latencies_.push_back(bench::seconds_since(started) * 1e6);
    start_next();
    if (--open_ == 0) done_.release();
  }

  http::OutgoingClient& client_;
  const std::string url_;
  std::atomic<int> left_;
  std::atomic<int> open_{1};  // calls, and 1 until wait()
  int failed_ = 0;
  std::vector<double> latencies_;
  std::binary_semaphore done_{0};
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  SystemClock clock;
  const auto connections = static_cast<std::size_t>(std::atoi(argv[2]));
  http::OutgoingClient client(
      {.connections_max = connections, .connections_per_host_max = connections, .ca_file = argc > 4 ? argv[4] : ""},
      clock);
  Load load(client, argv[1], std::atoi(argv[3]));
  const auto start = bench::Stopwatch::now();
  for (std::size_t i = 0; i < connections; ++i) load.start_next();
  load.wait();
  load.print(bench::seconds_since(start));
}
