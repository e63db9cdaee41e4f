#include "keying/cache_key.hpp"

#include "base/hex.hpp"
#include "keying/canonical_json.hpp"

namespace latchkey {

Result<std::string> compute_cache_key(std::string_view job_id, std::string_view inputs, std::string_view process_id) {
  if (process_id.empty()) return fail(Code::INVALID_ARGUMENT, "the process id is empty");
  // So the process id starts behind the last ':'. And no JSON value has, behind a ':' of its own, another JSON value as
  // its tail (a bracket or a quote of the tail would lack its partner): the job id ends where the inputs must start.
  if (process_id.contains(':')) return fail(Code::INVALID_ARGUMENT, "the process id has a ':'");
  std::string text(job_id);
  text += ':';
  if (auto appended = append_canonical_json(inputs, text); !appended)
    return std::unexpected(std::move(appended.error()));
  text += ':';
  text += process_id;
  return to_hex(sha256(text));
}

}  // namespace latchkey
