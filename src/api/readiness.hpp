// Readiness: whether the store could be written lately. A store that failed refuses for a while and answers reads as
// usual, so a probe alone would not tell. Safe from any thread.
#pragma once

#include <mutex>
#include <optional>

#include "base/clock.hpp"
#include "base/error.hpp"

namespace latchkey::api {

class Readiness {
 public:
  explicit Readiness(Clock& clock) : clock_(clock) {}

  // Remembers the store's own failures; whether this is one.
  bool note(const Error& error) {
    if (error.code != Code::STORE_FULL && error.code != Code::STORE_UNAVAILABLE) return false;
    const std::lock_guard lock(mutex_);
    failure_ = error;
    failed_at_ = clock_.elapsed();
    return true;
  }
  // The failure that is too recent for a probe to be of use.
  std::optional<Error> find_failure() {
    const std::lock_guard lock(mutex_);
    if (failure_ && clock_.elapsed() - failed_at_ >= kRecent) failure_.reset();
    return failure_;
  }

 private:
  static constexpr Duration kRecent = std::chrono::milliseconds{1500};

  Clock& clock_;
  std::mutex mutex_;
  std::optional<Error> failure_;
  Duration failed_at_{};
};

}  // namespace latchkey::api
