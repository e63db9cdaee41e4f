// TokenRefresher: reads the tokens anew every second, where other servers change them too: a token that was revoked there
// is refused here a moment later. Its own thread, as the store may be elsewhere; a read that fails changes nothing.
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
