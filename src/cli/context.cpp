#include "cli/context.hpp"

#include <ostream>

#include "cli/flag_words.hpp"

namespace latchkey {

void CliContext::report(const Error& error, int exit) const {
  err << "latchkey: " + to_string(with_flag_words(error)) + "\n" << std::flush;
  set_exit(exit);
}

}  // namespace latchkey
