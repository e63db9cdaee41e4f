// Calls a verb of a store and waits for its callback, which may come on another thread.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <stdexcept>

#include "store/store.hpp"

namespace latchkey {

// Longer than any timeout of a store in the tests, which is a minute at most.
inline constexpr std::chrono::seconds kPatience{90};

// `call` receives the callback to pass on. Throws, which fails the test, if no reply or a second reply comes.
template <class T, class Call>
Result<T> await_result(Call call) {
  struct Answer {
    std::promise<Result<T>> promise;
    std::atomic<int> calls{0};
  };
  auto answer = std::make_shared<Answer>();
  auto future = answer->promise.get_future();
  call(Done<T>([answer](Result<T> result) {
    if (answer->calls++ == 0) answer->promise.set_value(std::move(result));
  }));
  if (future.wait_for(kPatience) != std::future_status::ready) throw std::runtime_error("the store did not answer");
  if (answer->calls != 1) throw std::runtime_error("the store answered more than once");
  return future.get();
}

template <class T, class Call>
T await(Call call) {
  auto result = await_result<T>(std::move(call));
  if (!result) throw std::runtime_error(to_string(result.error()));
  return *std::move(result);
}

}  // namespace latchkey
