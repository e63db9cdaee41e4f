// An open run's state as lk_runs and lk_states keep it: one packed value, because a column costs more to write than its
// bytes do, and a job's state is written twice.
#pragma once

#include <string>
#include <string_view>

#include "model/run.hpp"

namespace latchkey {

// Into the buffer, which is overwritten. All of the run but its head and generation.
std::string_view pack_open(const Run& run, std::string& buffer);
// The run's head is set already.
void unpack_open(std::string_view bytes, Run& run);

}  // namespace latchkey
