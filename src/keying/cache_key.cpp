#include "keying/cache_key.hpp"

#include "base/hex.hpp"
#include "keying/canonical_json.hpp"

namespace latchkey {

Result<std::string> compute_cache_key(std::string_view job_id, std::string_view inputs, std::string_view process_id) {
  if (process_id.empty()) return fail(Code::INVALID_ARGUMENT, "the process id is empty");
  // The three parts can be found again in the text. The process id starts after the last ':'. The inputs start at one
  // place only, because no JSON value ends with a ':' and a second JSON value: the end would also contain the closing
  // bracket or quote of the first one, without its opening partner.
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
