// EmbeddedStore: the store in the data directory, owned for one piece of work at a time. Takes the lock, opens, works,
// closes, lets go; so other commands, and a server that starts, wait for milliseconds only. From any one thread.
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

  // None: the work was done. An address: a server owns the store and nothing was done; ask it.
  // STORE_LOCKED when another command did not let go within 10 s. STORE_FULL when there is no room to open it; but a
  // store that stands in the file already is opened on a full disk too, and answers what it can without writing.
  Result<std::optional<std::string>> use(const std::function<void(Store&)>& work);
  // The error as a person can act on it: one that comes of a full disk is STORE_FULL and says whose disk.
  Error explain(Error error) const;

 private:
  std::string file_;
  Clock& clock_;
  Random& random_;
};

// A verb of the store, waited for. Not from a callback of the store's.
template <class T, class Start>
Result<T> wait_for(Start start) {
  std::promise<Result<T>> promise;
  auto future = promise.get_future();
  start(Done<T>([&promise](Result<T> reply) { promise.set_value(std::move(reply)); }));
  return future.get();
}

}  // namespace latchkey
