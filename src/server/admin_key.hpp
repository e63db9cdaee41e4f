// DIR/admin.key: an admin token for the command line of the same user, written at the first start.
#pragma once

#include <string>

#include "base/error.hpp"
#include "base/random.hpp"
#include "store/store.hpp"

namespace latchkey {

// Creates the file if it is missing (mode 0600, synced, never replacing a file), and adds its token to the store. The
// file is written first: after a crash between the two steps the next start adds the token. A revoked token stays
// revoked.
Result<void> ensure_admin_key(const std::string& path, Store& store, Random& random);

}  // namespace latchkey
