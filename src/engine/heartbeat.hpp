// Heartbeat: extends the lease of an attempt while its effect runs, and stops the effect when the lease may have
// expired.
#pragma once

#include "base/clock.hpp"
#include "engine/run_once.hpp"

namespace latchkey {

class Heartbeat {
 public:
  // `good_until` is a time of the monotonic clock.
  Heartbeat(ClaimStore& claims, Clock& clock, const Won& won, Duration lease, Duration good_until)
      : claims_(claims),
        clock_(clock),
        run_(won.run.id()),
        tenant_(won.run.head->tenant),
        fence_(won.fence),
        lease_(lease),
        good_until_(good_until) {}

  // Sends a heartbeat after each third of the lease, and soon after a failed one, until it is cancelled. Never returns
  // before that. Calls effect.stop() at most once.
  Task<void> run(SideEffect& effect);
  // Sends one heartbeat. Returns false when the lease is lost or the store returned an error.
  Task<bool> beat();
  bool is_good() { return !lost_ && clock_.elapsed() < good_until_; }
  bool cancel_requested() const { return cancel_requested_; }
  // The store's error for the latest heartbeat; none if the store replied, even with a refusal.
  const std::optional<Error>& trouble() const { return trouble_; }

 private:
  Task<void> watch(SideEffect& effect);
  Task<void> beat_on(SideEffect& effect);
  void stop_if_needed(SideEffect& effect);

  ClaimStore& claims_;
  Clock& clock_;
  RunId run_;
  std::string tenant_;
  Fence fence_;
  Duration lease_;
  Duration good_until_;
  std::optional<Error> trouble_;
  bool lost_ = false;
  bool cancel_requested_ = false;
  bool stopped_ = false;
};

}  // namespace latchkey
