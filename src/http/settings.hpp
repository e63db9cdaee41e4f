// Settings: the address, limits and deadlines of a Server.
#pragma once

#include <cstdint>
#include <string>

#include "base/time.hpp"
#include "http/cors.hpp"
#include "http/head.hpp"

namespace latchkey::http {

struct Settings {
  std::string address = "127.0.0.1";  // an IPv4 or IPv6 address, not a name
  std::uint16_t port = 0;             // 0 lets the kernel choose; Server::port() returns it
  unsigned threads = 2;               // each with its own listener and its own connections

  HeadLimits head;  // a larger head is rejected with 431
  std::size_t body_bytes_max =
      2 * 1024 * 1024;  // a larger body is rejected with 413, before reading if Content-Length shows it

  Duration head_deadline = std::chrono::seconds{10};   // for a complete head, from accept or its first byte; then 408
  Duration body_deadline = std::chrono::seconds{30};   // for a complete body, plus its size at the rate below; then 408
  std::size_t bytes_per_second_min = 64 * 1024;        // minimum rate of a large body or response
  Duration idle_deadline = std::chrono::seconds{60};   // between two requests; then the server closes
  Duration write_deadline = std::chrono::seconds{30};  // for the client to read a response, plus its size at that rate
  Duration linger_deadline = std::chrono::seconds{2};  // for the client to close after the last response
  Duration stop_deadline = std::chrono::seconds{10};   // for requests in flight when the server stops
  Duration tick = std::chrono::milliseconds{250};      // resolution of all these deadlines

  std::size_t connections_max = 10'000;  // a connection beyond it receives 503 and is closed
  std::size_t in_flight_max = 10'000;    // requests without a response yet; a request beyond it receives 503

  std::size_t stream_high_water_bytes = 256 * 1024;  // a stream's buffer is full from this size on
  std::size_t stream_bytes_max = 4 * 1024 * 1024;    // a stream whose buffer exceeds this is disconnected

  CorsSettings cors;  // off by default
};

}  // namespace latchkey::http
