#include "model/run.hpp"

#include <array>

#include "base/seeded_bug.hpp"

namespace latchkey {
namespace {

constexpr std::array<std::string_view, 6> kStatuses{"queued",    "running", "in_doubt",
                                                    "completed", "failed",  "cancelled"};
constexpr std::array<std::string_view, 3> kGuards{"none", "once", "while-running"};

template <class E, std::size_t N>
std::optional<E> find_name(const std::array<std::string_view, N>& names, std::string_view text) {
  for (std::size_t i = 0; i < N; ++i)
    if (names[i] == text) return static_cast<E>(i);
  return std::nullopt;
}

}  // namespace

std::string_view to_string(Status status) { return kStatuses.at(static_cast<std::size_t>(status)); }
std::optional<Status> parse_status(std::string_view text) { return find_name<Status>(kStatuses, text); }
std::string_view to_string(Guard guard) { return kGuards.at(static_cast<std::size_t>(guard)); }
std::optional<Guard> parse_guard(std::string_view text) { return find_name<Guard>(kGuards, text); }
std::string_view to_string(OnDoubt on_doubt) { return on_doubt == OnDoubt::rerun ? "rerun" : "hold"; }
std::string_view to_string(Effect effect) { return effect == Effect::none ? "none" : "unknown"; }

Instant Run::settled_at() const {
  if (const auto* completed = as<Completed>()) return completed->at;
  if (const auto* failed = as<Failed>()) return failed->at;
  if (const auto* cancelled = as<Cancelled>()) return cancelled->at;
  return {};
}

bool Run::in_window(Instant now) const {
  const auto* completed = as<Completed>();
  if (LK_SEEDED(window_from_creation) && completed && head->guard == Guard::once)
    return now - head->created_at < head->window;
  return completed != nullptr && head->guard == Guard::once && now - completed->at < head->window;
}

}  // namespace latchkey
