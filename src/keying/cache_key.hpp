// The key of a cached result: SHA-256, in hexadecimal, of {jobId}:{inputs as canonical JSON}:{processId}.
// Pure; safe from any thread.
#pragma once

#include <string>
#include <string_view>

#include "base/error.hpp"

namespace latchkey {

// 64 lower-case hexadecimal digits. An empty job id makes the result common to all jobs.
// INVALID_JSON for inputs that canonical_json.hpp refuses. INVALID_ARGUMENT for a process id that is empty or has a
// ':', with which two different triples could make one text; a ':' in the job id does no harm.
Result<std::string> compute_cache_key(std::string_view job_id, std::string_view inputs, std::string_view process_id);

}  // namespace latchkey
