// The back ends that the conformance suite runs on, none skipped. A back end joins by adding itself in backends.cpp.
#pragma once

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "store/store.hpp"

namespace latchkey {

// A fresh, empty store on a manual clock.
class OpenStore {
 public:
  virtual ~OpenStore() = default;
  virtual Store& store() = 0;
  virtual ManualClock& clock() = 0;
  // Closes the store normally and opens it again, on the same clock. store() is another object afterwards.
  virtual void reopen() = 0;
  // True if acknowledged changes survive reopen(). Otherwise the store is empty after reopen().
  virtual bool is_durable() const = 0;
};

struct Backend {
  std::string name;  // letters, digits, underscores
  std::function<std::unique_ptr<OpenStore>()> make;
};

const std::vector<Backend>& backends();

inline void PrintTo(const Backend& backend, std::ostream* out) { *out << backend.name; }

}  // namespace latchkey
