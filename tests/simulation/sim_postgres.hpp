// SimPostgres: one or two hosts' stores on one real PostgreSQL, by the world's clock. Their commands wait for the world
// to say when, are carried out at once by as many connections as there are (where there are two hosts, a few may go
// together), and are waited for. In some worlds
// connections are cut at a commit, before or after the server has it; a crash may do that too, and then nobody learns
// whether it was kept, or the server falls silent, and the stores are closed by that. In some worlds a user's
// transaction holds some rows (runs, heads, dead letters, one that it is making) from one step to another, or until
// nothing else goes on, and commits or rolls back. What happens is not wholly the seed's: the hosts' threads and the
// server have a say.
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
    calm();
    hosts_.clear();
  }

  Store& store() override { return *queue_; }
  bool stepped() const override { return true; }
  std::size_t step() override;
  void crash() override;
  bool is_orderly() const override { return false; }
  void calm() override;
  std::string find_contradiction() override;

 private:
  // How long something took includes the world's time, which passes between steps alone. Pauses are cut short.
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
  void fall_silent();
  void hold();
  void let_go();

  Clock& clock_;
  HostClock host_clock_;
  SeededRandom dice_;
  std::unique_ptr<FaultProxy> proxy_;  // none: nothing is cut
  std::string url_;
  std::unique_ptr<PgClient> user_;  // none: nobody holds anything
  bool minds_letters_ = false;      // it is mostly at dead letters: few runs end by time alone while they are held
  std::uint64_t steps_held_ = 0;    // that are left
  bool must_undo_ = false;          // what it has written
  std::vector<Host> hosts_;
  std::unique_ptr<QueuedStore> queue_;
};

}  // namespace latchkey::sim
