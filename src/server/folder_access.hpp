// Whether this user may read in a folder. Without this check "Permission denied" for a file in the folder could be
// taken for "the file exists". Safe from any thread.
#pragma once

#include <string>

#include "base/error.hpp"

namespace latchkey {

// STORE_UNAVAILABLE, with the owner's name, when a folder on the way to `path` cannot be entered, or the file `path`
// cannot be read. A path that does not exist is no fault. An empty path neither.
Result<void> check_access(const std::string& path);

}  // namespace latchkey
