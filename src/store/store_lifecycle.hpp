// StoreLifecycle: the state of the store itself: its clock, its health, its shutdown. Any thread may call.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include "base/error.hpp"
#include "base/time.hpp"
#include "store/done.hpp"

namespace latchkey {

class StoreLifecycle {
 public:
  virtual ~StoreLifecycle() = default;

  // The store's clock. It never runs backwards, not even across a restart.
  virtual Instant now() = 0;
  // Rises when the store may have lost committed data, for example after a failover. Callers must drop what they cached
  // from earlier replies.
  virtual std::uint64_t data_epoch() const { return 0; }
  // The error of the latest write, until a write succeeds again. Never waits.
  virtual std::optional<Error> find_failure() { return std::nullopt; }
  // Writes only the store's own bookkeeping, to find out whether writes succeed again.
  virtual void probe(Done<std::monostate> done) { done(std::monostate{}); }
  // Announces that the store will be closed. Requests that wait for an unresponsive server receive their reply within a
  // few seconds, if need be that their commit is unknown. The store still accepts requests. A second call does nothing.
  virtual void begin_shutdown() {}
};

}  // namespace latchkey
