// Task<T>: a coroutine of the engine. Starts when awaited; runs on its io_context's thread only.
#pragma once

#include <boost/asio/awaitable.hpp>

namespace latchkey {

namespace asio = boost::asio;

template <class T = void>
using Task = asio::awaitable<T>;

}  // namespace latchkey
