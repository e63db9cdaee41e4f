// PostgreSQL's programs, and those beside it, as tests start them: not as root, and gone when the test is.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace latchkey {

// Where Debian's postgresql-15 keeps it.
std::string pg_program(const std::string& name);
// Its output goes to `log`. It is killed when the calling thread ends.
pid_t start_pg_program(std::vector<std::string> arguments, const std::string& log);
// The status that waitpid gave.
int wait_for_program(pid_t pid);
// To its end; throws with its output when it fails.
void run_pg_program(std::vector<std::string> arguments, const std::string& log);

}  // namespace latchkey
