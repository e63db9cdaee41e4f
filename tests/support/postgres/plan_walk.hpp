// Work on a store on PostgreSQL, as servers do it: fillers that leave thousands of runs in each place that they may lie
// in, and a walk through every kind of statement, in steps of a known size.
#pragma once

#include <functional>

#include "conformance/await.hpp"
#include "store/store.hpp"
#include "support/postgres/pg_client.hpp"

namespace latchkey {

class PlanFiller {
 public:
  explicit PlanFiller(Store& store) : store_(store) {}
  // `count` runs of each kind: completed; waiting for their next try; running with rows of their own; in a dead letter;
  // each with keys and without.
  void fill_history(int count);
  // `count` blocks of one run each: due, due later, leased; of three tenants.
  void fill_blocks(int count);
  // Enqueues, takes and completes `count` jobs, each a block of its own: all dead afterwards.
  void churn_blocks(int count);

 private:
  std::vector<Taken> take(const std::string& function);
  void settle(const std::vector<Taken>& taken, const Ending& ending);

  Store& store_;
};

// `step` is told each step's name and how many runs it asks for, at most, before it is taken.
class PlanWalk {
 public:
  using Announce = std::function<void(const std::string& name, int asked)>;
  PlanWalk(Store& store, PgClient& client, Announce announce)
      : store_(store), client_(client), announce_(std::move(announce)) {}
  void walk();

 private:
  void enqueue_and_claim();
  void take_and_settle();
  void retry();
  void chain();
  void bury();
  void sweep();
  void meet_others();
  void read();
  void purge();
  // What comes is no step.
  void prepare() { announce_("in between", 1000); }
  void await_lock(const char* how_many);

  Store& store_;
  PgClient& client_;
  Announce announce_;
};

// What all of these use.
std::vector<EnqueueRequest> jobs_of(const std::string& function, int count, const std::string& key = "",
                                    const std::string& tenant = "default");
// Two functions in turn: every job is a block of its own.
std::vector<EnqueueRequest> single_jobs_of(const std::string& function, const std::string& other, int count);
std::vector<Run> enqueue_jobs(Store& store, const std::vector<EnqueueRequest>& jobs);
std::vector<Taken> take_jobs(Store& store, std::vector<std::string> functions, int limit,
                             std::optional<std::string> tenant = std::nullopt);
std::vector<SettleReply> settle_jobs(Store& store, const std::vector<Taken>& taken, const Ending& ending);

}  // namespace latchkey
