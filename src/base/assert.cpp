#include "base/assert.hpp"

#include <cstdio>
#include <cstdlib>

namespace latchkey {

void assert_failed(const char* expression, const char* file, int line) {
  std::fprintf(stderr, "latchkey: broken invariant: %s (%s:%d)\n", expression, file, line);
  std::abort();
}

}  // namespace latchkey
