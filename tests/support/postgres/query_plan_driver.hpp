// A realistic workload for a store on PostgreSQL: TableFiller fills every table with thousands of runs, and
// QueryPlanDriver executes every kind of statement in steps of a known size.
#pragma once

#include <functional>

#include "conformance/await.hpp"
#include "store/store.hpp"
#include "support/postgres/pg_client.hpp"

namespace latchkey {

class TableFiller {
 public:
  explicit TableFiller(Store& store) : store_(store) {}
  // Adds `count` runs of each kind: completed; queued for a retry; running with a row of its own; in a dead letter;
  // with and without keys.
  void fill_history(int count);
  // Adds `count` blocks of one run each, of three kinds: due, due later, leased.
  void fill_blocks(int count);
  // Enqueues, takes and completes `count` jobs, each in its own block, so that all block rows are dead afterwards.
  void churn_blocks(int count);

 private:
  std::vector<Taken> take(const std::string& function);
  void settle(const std::vector<Taken>& taken, const Ending& ending);

  Store& store_;
};

// Calls `announce` before each step, with the step's name and the highest number of runs that it requests.
class QueryPlanDriver {
 public:
  using Announce = std::function<void(const std::string& name, int runs_max)>;
  QueryPlanDriver(Store& store, PgClient& client, Announce announce)
      : store_(store), client_(client), announce_(std::move(announce)) {}
  void run();

 private:
  void enqueue_and_claim();
  void take_and_settle();
  void retry();
  void chain();
  void fail_runs();
  void sweep();
  void run_beside_locks();
  void read();
  void purge();
  // The next statements prepare a step.
  void prepare() { announce_("preparation", 1000); }
  void wait_for_lock_waits(const char* count);

  Store& store_;
  PgClient& client_;
  Announce announce_;
};

// Blocking helpers for both classes.
std::vector<EnqueueRequest> jobs_of(const std::string& function, int count, const std::string& key = "",
                                    const std::string& tenant = "default");
// The jobs alternate between two functions, so that every job gets its own block.
std::vector<EnqueueRequest> single_jobs_of(const std::string& function, const std::string& other, int count);
std::vector<Run> enqueue_jobs(Store& store, const std::vector<EnqueueRequest>& jobs);
std::vector<Taken> take_jobs(Store& store, std::vector<std::string> functions, int limit,
                             std::optional<std::string> tenant = std::nullopt);
std::vector<SettleReply> settle_jobs(Store& store, const std::vector<Taken>& taken, const Ending& ending);

}  // namespace latchkey
