// LifeStage: the position in a run's life to which a reply belongs. A run passes through the stages in this order, so
// replies of several connections at one instant can be sorted into the order of their commits.
#pragma once

#include <compare>

#include "model/requests.hpp"

namespace latchkey::sim {

struct LifeStage {
  Fence fence{};
  std::uint32_t generation = 0;
  int state = 0;
  bool is_repeat = false;  // a repeated reply sorts after the first one
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
    return {};  // a reply without a run
  }
}
template <class... Ts>
LifeStage stage_of(const std::variant<Ts...>& reply) {
  return std::visit([](const auto& one) { return stage_of(one); }, reply);
}

}  // namespace latchkey::sim
