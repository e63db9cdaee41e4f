// StoredOutput: what is kept of a command that ended well, as the bytes of a run's result:
//
//   {"exit_code":0,"stdout":{"text":"done\n","bytes":5,"truncated":false},"stderr":{"base64":"…", …}}
//
// `text` where the kept bytes are UTF-8 without NUL, else `base64`; `bytes` is how many there were before cutting.
// Pure; safe from any thread.
#pragma once

#include <optional>
#include <string>

#include "effects/last_bytes.hpp"

namespace latchkey {

struct StoredStream {
  std::string bytes;
  std::uint64_t total = 0;
  bool truncated = false;
};
struct StoredOutput {
  int exit_code = 0;
  StoredStream output;
  StoredStream errors;
};

StoredStream keep(const LastBytes& stream);
std::string write_stored_output(const StoredOutput& kept);
// None when the bytes are not such a result: somebody else settled the run.
std::optional<StoredOutput> read_stored_output(const std::string& result);

}  // namespace latchkey
