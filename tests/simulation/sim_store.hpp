// The store under simulation: it survives server crashes, and the world decides when it commits.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "store/store.hpp"

namespace latchkey::sim {

class SimStore {
 public:
  virtual ~SimStore() = default;
  virtual Store& store() = 0;
  // Whether commands wait for step().
  virtual bool stepped() const = 0;
  // Commits the waiting commands in one transaction, and returns their number.
  virtual std::size_t step() = 0;
  // The server's process dies: uncommitted commands are lost, no callback runs, and the store is opened again.
  virtual void crash() = 0;
  // The world's faults stop: the store stops its own faults, too.
  virtual void stop_faults() {}
  // A contradiction between two tables about a run; empty if there is none.
  virtual std::string find_contradiction() { return {}; }
  // Whether replies come in the order of commits, and a crash commits no pending command.
  virtual bool is_orderly() const { return true; }
};

// queued: memory whose commands wait for a commit.
enum class StoreKind { memory, queued, sqlite, postgres };
std::unique_ptr<SimStore> make_store(StoreKind kind, Clock& clock, Random& random);

}  // namespace latchkey::sim
