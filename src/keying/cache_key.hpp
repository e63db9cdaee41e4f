// The key of a cached result: SHA-256, in hexadecimal, of {jobId}:{inputs as canonical JSON}:{processId}.
// Pure; safe from any thread.
#pragma once

#include <string>
#include <string_view>

#include "base/error.hpp"

namespace latchkey {

// 64 lower-case hexadecimal digits. With an empty job id all jobs share the result.
// INVALID_JSON for inputs that canonical_json.hpp refuses. INVALID_ARGUMENT for a process id that is empty or contains
// a
// ':', with which two different triples could have the same text. The job id may contain a ':'.
Result<std::string> compute_cache_key(std::string_view job_id, std::string_view inputs, std::string_view process_id);

}  // namespace latchkey
