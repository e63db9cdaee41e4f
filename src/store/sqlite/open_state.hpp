// The packed open state of a run in lk_runs and lk_states. It is one value, because a column costs more to write than
// its bytes, and the state of a job is written twice.
#pragma once

#include <string>
#include <string_view>

#include "model/run.hpp"

namespace latchkey {

// Packs the run, without its head and generation, into the buffer, which is overwritten.
std::string_view pack_open(const Run& run, std::string& buffer);
// Unpacks into a run whose head is set.
void unpack_open(std::string_view bytes, Run& run);

}  // namespace latchkey
