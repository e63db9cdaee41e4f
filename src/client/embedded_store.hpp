// EmbeddedStore: the store of a data directory, open for one piece of work at a time. Each use acquires the lock, opens
// the store, works, closes it and releases the lock. Other commands, and a server that starts, wait for milliseconds.
//
// One thread at a time.
#pragma once

#include <functional>
#include <future>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "store/store.hpp"

namespace latchkey {

class EmbeddedStore {
 public:
  EmbeddedStore(std::string file, Clock& clock, Random& random)
      : file_(std::move(file)), clock_(clock), random_(random) {}

  // Returns none after the work was done, or the address of the server that owns the store; then nothing was done.
  // STORE_LOCKED when another command has the lock for more than 10 s. STORE_FULL when there is no room to open the
  // store. An existing store is opened on a full disk, too, and its reads work.
  Result<std::optional<std::string>> use(const std::function<void(Store&)>& work);
  // Makes an error of a full disk a STORE_FULL that names the file.
  Error explain(Error error) const;

 private:
  std::string file_;
  Clock& clock_;
  Random& random_;
};

// Calls a verb of the store and waits for its callback. Must not run in a callback of the store.
template <class T, class Start>
Result<T> wait_for(Start start) {
  std::promise<Result<T>> promise;
  auto future = promise.get_future();
  start(Done<T>([&promise](Result<T> reply) { promise.set_value(std::move(reply)); }));
  return future.get();
}

}  // namespace latchkey
