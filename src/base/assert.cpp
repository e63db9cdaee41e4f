#include "base/assert.hpp"

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

namespace latchkey {

void assert_failed(const char* expression, const char* file, int line) {
#ifdef LATCHKEY_SEEDED_BUGS
  // The tests of seeded bugs continue with the next bug.
  throw std::logic_error(std::string("broken invariant: ") + expression + " (" + file + ":" + std::to_string(line) +
                         ")");
#else
  std::fprintf(stderr, "latchkey: broken invariant: %s (%s:%d)\n", expression, file, line);
  std::abort();
#endif
}

}  // namespace latchkey
