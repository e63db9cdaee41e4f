// DIR/admin.key: an admin token for the command line of the same user, written at the first start.
#pragma once

#include <string>

#include "base/error.hpp"
#include "base/random.hpp"
#include "store/store.hpp"

namespace latchkey {

// Makes the file (0600, never over another one, synced) when it is missing, and has the store know its token. The file
// comes first: a crash between the two is mended at the next start. A token that was revoked stays so.
Result<void> ensure_admin_key(const std::string& path, Store& store, Random& random);

}  // namespace latchkey
