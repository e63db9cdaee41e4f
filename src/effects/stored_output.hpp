// StoredOutput: the output of a successful command as the bytes of a run's result:
//
//   {"exit_code":0,"stdout":{"text":"done\n","bytes":5,"truncated":false},"stderr":{"base64":"…", …}}
//
// `text` if the stored bytes are UTF-8 without NUL, else `base64`; `bytes` is the length of the whole stream.
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

StoredStream to_stored(const LastBytes& stream);
std::string write_stored_output(const StoredOutput& stored);
// None if the bytes are not such a result: another client settled the run.
std::optional<StoredOutput> read_stored_output(const std::string& result);

}  // namespace latchkey
