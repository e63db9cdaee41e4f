// LK_ASSERT checks an invariant, also in release builds. A broken invariant is logged and aborts the process, because a
// crash is recoverable and a wrong record is not.
#pragma once

namespace latchkey {

[[noreturn]] void assert_failed(const char* expression, const char* file, int line);

}  // namespace latchkey

#define LK_ASSERT(expression) \
  (static_cast<bool>(expression) ? void(0) : ::latchkey::assert_failed(#expression, __FILE__, __LINE__))
