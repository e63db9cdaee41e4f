// Asio's own code, compiled once: every other file has BOOST_ASIO_SEPARATE_COMPILATION.
#include <boost/asio/impl/src.hpp>
