#include "cli/context.hpp"

#include <ostream>

namespace latchkey {

void CliContext::report(const Error& error, int exit) const {
  err << "latchkey: " + to_string(error) + "\n" << std::flush;
  set_exit(exit);
}

}  // namespace latchkey
