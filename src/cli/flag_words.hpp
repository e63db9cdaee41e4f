// The server's and the store's errors name members of JSON and headers. On the command line they are flags. Pure.
#pragma once

#include "base/error.hpp"

namespace latchkey {

// The same error with the flags' names: "`lease_ms`" becomes "`--lease`".
Error with_flag_words(Error error);

}  // namespace latchkey
