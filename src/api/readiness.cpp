#include "api/readiness.hpp"

#include <fmt/format.h>

namespace latchkey::api {

std::optional<Error> Readiness::find_failure() {
  auto failure = store_.find_failure();
  if (failure && !is_probing_.exchange(true))
    store_.probe([this](const Result<std::monostate>&) { is_probing_ = false; });
  return failure;
}

std::optional<std::string> Readiness::find_clock_warning() {
  const Duration ahead = store_.now() - clock_.now();
  if (ahead < kClockAheadMin) return std::nullopt;
  return fmt::format(
      "the store's clock is {} ahead of this host's clock: the clock was set back, or another host's clock is ahead; "
      "compare the clocks (NTP)",
      format_duration(std::chrono::floor<std::chrono::minutes>(ahead)));
}

}  // namespace latchkey::api
