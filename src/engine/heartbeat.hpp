// Heartbeat: keeps the lease of a try while its effect runs, and stops the effect when the lease is not known to be
// good.
#pragma once

#include "base/clock.hpp"
#include "engine/run_once.hpp"

namespace latchkey {

class Heartbeat {
 public:
  // `good_until` by the monotonic clock.
  Heartbeat(ClaimStore& claims, Clock& clock, const Won& won, Duration lease, Duration good_until)
      : claims_(claims),
        clock_(clock),
        run_(won.run.id()),
        tenant_(won.run.head->tenant),
        fence_(won.fence),
        lease_(lease),
        good_until_(good_until) {}

  // Extends at a third of the lease until it is cancelled, and never returns before that. Each heartbeat that failed is
  // sent again soon. Calls effect.stop() at most once.
  Task<void> run(SideEffect& effect);
  // One heartbeat; false when the lease is gone or the store did not answer.
  Task<bool> beat();
  bool is_good() { return !lost_ && clock_.elapsed() < good_until_; }
  bool cancel_requested() const { return cancel_requested_; }
  // Why the latest heartbeat was not answered; none when it was, whatever the answer.
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
