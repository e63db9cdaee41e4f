// SimEffect: an effect that takes virtual time, acts in steps, and ends in every way an effect can.
#pragma once

#include "engine/run_once.hpp"
#include "simulation/world.hpp"

namespace latchkey::sim {

class SimEffect final : public SideEffect {
 public:
  explicit SimEffect(Process& me) : me_(me) {}
  Task<EffectResult> run(const Won& won) override;
  void stop(StopReason) override { stopped_ = true; }

 private:
  EffectResult end(const Won& won);

  Process& me_;
  bool stopped_ = false;
};

}  // namespace latchkey::sim
