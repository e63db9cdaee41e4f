// LifeStage: how far a run's life was when the store said something of it. A run goes through them in this order, so
// that what several connections answered at one instant can be heard in the order in which it came to be.
#pragma once

#include <compare>

#include "model/requests.hpp"

namespace latchkey::sim {

struct LifeStage {
  Fence fence{};
  std::uint32_t generation = 0;
  int state = 0;
  bool is_repeat = false;  // said again: whoever brought it about is heard first
  auto operator<=>(const LifeStage&) const = default;
};

inline int rank_state(const Run& run) {
  if (const auto* running = run.as<Running>()) return running->cancel_requested ? 1 : 0;
  return run.as<InDoubt>() ? 2 : run.as<Queued>() ? 3 : run.as<Failed>() ? 4 : run.as<Cancelled>() ? 5 : 6;
}

inline LifeStage stage_of(const Run& run, bool is_repeat) {
  return {run.fence, run.generation, rank_state(run), is_repeat};
}
inline LifeStage stage_of(const auto& reply) {
  using Reply = std::remove_cvref_t<decltype(reply)>;
  if constexpr (requires { reply.changed; }) {
    return stage_of(reply.run, !reply.changed);
  } else if constexpr (requires { reply.duplicate; }) {
    return stage_of(reply.run, reply.duplicate);
  } else if constexpr (requires { reply.run; }) {
    return stage_of(reply.run, !std::is_same_v<Reply, Won>);
  } else {
    return {};  // nothing that has an order
  }
}
template <class... Ts>
LifeStage stage_of(const std::variant<Ts...>& reply) {
  return std::visit([](const auto& one) { return stage_of(one); }, reply);
}

}  // namespace latchkey::sim
