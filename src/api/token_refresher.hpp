// TokenRefresher: reads the tokens every second on its own thread, because other servers on the same store change them.
// A token that another server has revoked is refused here within about a second. A failed read changes nothing.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "api/auth.hpp"

namespace latchkey::api {

class TokenRefresher {
 public:
  explicit TokenRefresher(TokenTable& tokens);

 private:
  void run(const std::stop_token& stop);

  TokenTable& tokens_;
  std::mutex mutex_;
  std::condition_variable_any stopped_;
  std::jthread thread_;  // ends first
};

}  // namespace latchkey::api
