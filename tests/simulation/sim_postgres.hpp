// SimPostgres: one or two hosts' stores on one real PostgreSQL, with the world's clock. Commands wait for a step of the
// world, run at once on all connections (with two hosts, a few may share a batch), and the step waits for their
// replies.
//
// In some worlds connections are cut at a commit, before or after the server has received it. A crash may do that, too,
// and then the commit stays unknown; or the server stops responding, and the stores are closed in that state. In some
// worlds a user's transaction locks rows (runs, heads, dead letters) or inserts a dead letter for some steps, or until
// nothing else can proceed, and commits or rolls back.
//
// The seed does not determine everything: the order of the hosts' threads and of the server varies.
#pragma once

#include <vector>

#include "simulation/queued_store.hpp"
#include "simulation/sim_store.hpp"
#include "store/postgres/pg_store.hpp"
#include "support/postgres/fault_proxy.hpp"
#include "support/postgres/pg_client.hpp"

namespace latchkey::sim {

class SimPostgres final : public SimStore {
 public:
  SimPostgres(Clock& clock, Random& random);
  ~SimPostgres() override {
    stop_faults();
    hosts_.clear();
  }

  Store& store() override { return *queue_; }
  bool stepped() const override { return true; }
  std::size_t step() override;
  void crash() override;
  bool is_orderly() const override { return false; }
  void stop_faults() override;
  std::string find_contradiction() override;

 private:
  // Elapsed time is the sum of the world's time, which passes only between steps, and the machine's. Waits are
  // shortened.
  class HostClock final : public Clock {
   public:
    explicit HostClock(Clock& world) : world_(world) {}
    Instant now() override { return world_.now(); }
    Duration elapsed() override { return world_.elapsed() + machine_.elapsed(); }
    Task<void> wait(Duration span) override { return machine_.wait(span / 20); }

   private:
    Clock& world_;
    SystemClock machine_;
  };
  struct Host {
    std::unique_ptr<SeededRandom> random;
    std::unique_ptr<PostgresStore> store;
  };

  void open();
  void arm(std::vector<FaultHow> ways);
  void silence_server();
  void lock_rows();
  void release_locks();

  Clock& clock_;
  HostClock host_clock_;
  SeededRandom dice_;
  std::unique_ptr<FaultProxy> proxy_;  // none: no connection is cut
  std::string url_;
  std::unique_ptr<PgClient> user_;   // none: no rows are locked
  bool locks_dead_letters_ = false;  // the user mostly locks dead letters: few runs expire meanwhile
  std::uint64_t steps_locked_ = 0;   // until the user's transaction ends
  bool must_undo_ = false;           // the user's transaction, as it inserted rows
  std::vector<Host> hosts_;
  std::unique_ptr<QueuedStore> queue_;
};

}  // namespace latchkey::sim
