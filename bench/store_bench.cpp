// In-process figures of a store: store_bench pairs|jobs N | alone N | grow N FILE | reopen FILE
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

#include "bench.hpp"
#include "store/sqlite/sqlite_store.hpp"

namespace latchkey::bench {
namespace {

const std::string kResult(200, 'r');

std::unique_ptr<SqliteStore> open_store(const std::string& file, Clock& clock, Random& random) {
  auto store = SqliteStore::open({.file = file}, clock, random);
  if (!store) {
    std::fprintf(stderr, "%s\n", to_string(store.error()).c_str());
    std::exit(1);
  }
  return std::move(*store);
}

ClaimRequest claim_of(std::uint64_t number) {
  ClaimRequest request;
  request.function = "bench";
  request.key = key_text(number);
  request.key_hash = thread_sha256().add_prefixed("default").add_prefixed("bench").add_prefixed(request.key).finish();
  return request;
}

// Callers that claim and settle new keys until `pairs` are done. Two threads run their callbacks, as in servers.
class Pairs {
 public:
  Pairs(Store& store, std::uint64_t from, std::uint64_t pairs) : store_(store), next_(from), end_(from + pairs) {}

  double run(unsigned callers) {
    const auto start = Stopwatch::now();
    left_ = callers;
    for (unsigned i = 0; i < callers; ++i) claim_next();
    done_.acquire();
    return static_cast<double>(end_ - first_) / seconds_since(start);
  }
  double wait_ms(double percent) const { return percentile(waits_, percent); }

 private:
  void claim_next() {
    const std::uint64_t number = next_++;
    if (number >= end_) {
      if (--left_ == 0) done_.release();
      return;
    }
    store_.claim(claim_of(number), [this, asked = Stopwatch::now()](Result<ClaimReply> reply) {
      if (waits_.size() < 4'000'000) waits_.push_back(seconds_since(asked) * 1e3);
      const auto& won = std::get<Won>(reply.value());
      store_.settle({{.id = won.run.id(), .fence = won.fence, .ending = Complete{kResult, {}}}},
                    [this](Result<std::vector<SettleReply>> settled) {
                      if (!std::holds_alternative<Settled>(settled.value().front())) std::abort();
                      claim_next();
                    });
    });
  }

  Store& store_;
  std::vector<double> waits_;  // of claims, in ms; callbacks come on one thread
  std::atomic<std::uint64_t> next_;
  const std::uint64_t first_ = next_;
  const std::uint64_t end_;
  std::atomic<unsigned> left_{0};
  std::binary_semaphore done_{0};
};

// Two producers and four workers, each with one batch of 500 in flight.
class Jobs {
 public:
  Jobs(Store& store, std::uint64_t jobs) : store_(store), jobs_(jobs) {}

  double run() {
    constexpr unsigned kProducers = 2, kWorkers = 4;
    const auto start = Stopwatch::now();
    working_ = kWorkers;
    for (unsigned i = 0; i < kProducers; ++i) enqueue();
    for (unsigned i = 0; i < kWorkers; ++i) take();
    done_.acquire();
    return static_cast<double>(settled_.load()) / seconds_since(start);
  }

 private:
  static constexpr std::uint64_t kBatch = 500;

  void enqueue() {
    if (enqueued_.fetch_add(kBatch) >= jobs_) return;
    std::vector<EnqueueRequest> batch(kBatch);
    for (auto& job : batch) {
      job.function = "bench";
      job.input.assign(100, 'i');
    }
    store_.enqueue(std::move(batch), [this](Result<std::vector<EnqueueReply>>) { enqueue(); });
  }

  void take() {
    store_.take({.functions = {"bench"}, .limit = kBatch, .session = make_uuid_v7({}, 1, 1)},
                [this](Result<std::vector<Taken>> taken) { settle(*taken); });
  }

  void settle(const std::vector<Taken>& taken) {
    if (taken.empty()) {
      if (settled_.load() < jobs_) return take();
      if (--working_ == 0) done_.release();
      return;
    }
    std::vector<SettleRequest> endings;
    endings.reserve(taken.size());
    for (const Taken& one : taken)
      endings.push_back({.id = one.run.id(), .fence = one.fence, .ending = Complete{kResult, {}}});
    store_.settle(std::move(endings), [this](Result<std::vector<SettleReply>> replies) {
      settled_ += replies->size();
      take();
    });
  }

  Store& store_;
  const std::uint64_t jobs_;
  std::atomic<std::uint64_t> enqueued_{0};
  std::atomic<std::uint64_t> settled_{0};
  std::atomic<unsigned> working_{0};
  std::binary_semaphore done_{0};
};

// One caller alone: the time of a claim, beside that of a plain 4 KB append with fdatasync.
void run_alone(const std::string& folder_file, Store& store, std::uint64_t count) {
  std::vector<double> appends, claims;
  const int file = ::open(folder_file.c_str(), O_CREAT | O_WRONLY | O_APPEND, 0600);
  const std::string block(4096, 'x');
  for (std::uint64_t i = 0; i < count; ++i) {
    auto start = Stopwatch::now();
    if (::write(file, block.data(), block.size()) != 4096 || ::fdatasync(file) != 0) std::abort();
    appends.push_back(seconds_since(start) * 1e6);
    start = Stopwatch::now();
    std::binary_semaphore done{0};
    store.claim(claim_of(i), [&](Result<ClaimReply> reply) {
      if (!reply) std::abort();
      done.release();
    });
    done.acquire();
    claims.push_back(seconds_since(start) * 1e6);
  }
  ::close(file);
  fmt::print(R"({{"append_p50_us":{:.0f},"claim_p50_us":{:.0f},"claim_p99_us":{:.0f},"ratio":{:.2f}}})"
             "\n",
             percentile(appends, .5), percentile(claims, .5), percentile(claims, .99),
             percentile(claims, .5) / percentile(appends, .5));
}

double run_fresh(const std::string& file, std::uint64_t pairs, Clock& clock, Random& random) {
  const auto remove = [&] {
    for (const char* end : {"", "-wal", "-shm", ".lock"}) ::unlink((file + end).c_str());
  };
  remove();
  const double rate = Pairs(*open_store(file, clock, random), 0, pairs).run(1024);
  remove();
  return rate;
}

// The rate as the table grows; leaves the file as a killed process would, for `reopen`. This machine is not equally
// fast from minute to minute: around `total` every step is paired with one in a fresh file, and the ratio is that of
// their sums. Six steps pass through all of a merge.
void run_growth(Store& store, std::uint64_t total, const std::string& fresh_file, Clock& clock, Random& random) {
  constexpr std::uint64_t kStep = 200'000, kPaired = 6;
  const std::uint64_t paired_from = total < (kPaired / 2) * kStep ? 0 : total - (kPaired / 2) * kStep;
  double fresh_seconds = 0, grown_seconds = 0, resident = 0;
  std::string ratios;
  for (std::uint64_t at = 0; at < paired_from + kPaired * kStep; at += kStep) {
    const double rate = Pairs(store, at, kStep).run(1024);
    resident = std::max(resident, resident_mb());
    std::fprintf(stderr, "%9llu keys: %.0f pairs/s, %.0f MB resident\n", static_cast<unsigned long long>(at + kStep),
                 rate, resident_mb());
    if (at < paired_from) continue;
    const double fresh = run_fresh(fresh_file, kStep, clock, random);
    std::fprintf(stderr, "          in a fresh file: %.0f pairs/s\n", fresh);
    fresh_seconds += kStep / fresh;
    grown_seconds += kStep / rate;
    ratios += fmt::format("{}{:.3f}", ratios.empty() ? "" : ",", rate / fresh);
  }
  fmt::print(
      R"({{"keys":{},"first_pairs_s":{:.0f},"last_pairs_s":{:.0f},"ratio":{:.4f},"ratios":[{}],"resident_mb":{:.0f}}})"
      "\n",
      total, kPaired * kStep / fresh_seconds, kPaired * kStep / grown_seconds, fresh_seconds / grown_seconds, ratios,
      resident);
}

int run(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "pairs";
  SystemClock clock;
  SystemRandom random;
  if (what == "reopen") {
    const auto start = Stopwatch::now();
    const auto store = open_store(argv[2], clock, random);
    fmt::print(R"({{"open_ms":{:.0f}}})"
               "\n",
               seconds_since(start) * 1e3);
    return 0;
  }
  const std::uint64_t count = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 200'000;
  if (what == "grow" && argc > 3) {
    auto store = open_store(argv[3], clock, random);
    run_growth(*store, count, argv[3] + std::string("-fresh"), clock, random);
    std::fflush(stdout);
    std::_Exit(0);
  }
  const Folder folder(what);
  const auto store = open_store(folder.file("latchkey.db"), clock, random);
  if (what == "pairs") {
    Pairs pairs(*store, 0, count);
    const double rate = pairs.run(1024);
    fmt::print(R"({{"pairs_s":{:.0f},"claim_p50_ms":{:.1f},"claim_p99_ms":{:.1f},"claim_max_ms":{:.1f}}})"
               "\n",
               rate, pairs.wait_ms(.5), pairs.wait_ms(.99), pairs.wait_ms(1));
  }
  if (what == "jobs")
    fmt::print(R"({{"jobs_s":{:.0f}}})"
               "\n",
               Jobs(*store, count).run());
  if (what == "alone") run_alone(folder.file("append"), *store, count);
  return 0;
}

}  // namespace
}  // namespace latchkey::bench

int main(int argc, char** argv) { return latchkey::bench::run(argc, argv); }
