// The store under simulation: one that survives server crashes, and whose commits happen when the world says so.
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
  // Commits what waits, in one transaction; how many commands that were.
  virtual std::size_t step() = 0;
  // The server's process is gone: what was not committed is lost, nobody is called back. Then it is opened again.
  virtual void crash() = 0;
  // Faults stop: what the store's surroundings do of themselves stops, too.
  virtual void calm() {}
  // What the database says of a run in one place and denies in another; empty: nothing.
  virtual std::string find_contradiction() { return {}; }
  // Whether commands are applied in the order in which they are answered, and a crash keeps none that was not.
  virtual bool is_orderly() const { return true; }
};

// queued: memory whose commands wait for a commit.
enum class StoreKind { memory, queued, sqlite, postgres };
std::unique_ptr<SimStore> make_store(StoreKind kind, Clock& clock, Random& random);

}  // namespace latchkey::sim
