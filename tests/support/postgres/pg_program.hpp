// Starts PostgreSQL's programs and PgBouncer for tests: never as root, and they end with the test.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace latchkey {

// The path of a program of Debian's postgresql-15.
std::string pg_program(const std::string& name);
// Appends the output to `log`. The kernel kills the program when the calling thread ends.
pid_t start_pg_program(std::vector<std::string> arguments, const std::string& log);
// Returns the status from waitpid.
int wait_for_program(pid_t pid);
// Runs the program to its end. Throws its output if it fails.
void run_pg_program(std::vector<std::string> arguments, const std::string& log);

}  // namespace latchkey
