#include "cli/context.hpp"

#include <ostream>

namespace latchkey {

void CliContext::report(const Error& error) const {
  err << "latchkey: " + to_string(error) + "\n" << std::flush;
  set_exit(exit_code_of(error.code));
}

}  // namespace latchkey
