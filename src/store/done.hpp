// Done: the callback of a store's write.
#pragma once

#include <functional>

#include "base/error.hpp"

namespace latchkey {

// The store calls it exactly once, on a thread of the store's choosing. It must be short and must not throw.
template <class T>
using Done = std::move_only_function<void(Result<T>)>;

}  // namespace latchkey
