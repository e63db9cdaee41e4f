#include "api/token_refresher.hpp"

#include <chrono>

namespace latchkey::api {

TokenRefresher::TokenRefresher(TokenTable& tokens)
    : tokens_(tokens), thread_([this](const std::stop_token& stop) { run(stop); }) {}

void TokenRefresher::run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    stopped_.wait_for(lock, stop, std::chrono::seconds{1}, [] { return false; });
    if (!stop.stop_requested()) (void)tokens_.refresh();
  }
}

}  // namespace latchkey::api
