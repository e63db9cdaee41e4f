// How a Server listens and what it tolerates.
#pragma once

#include <cstdint>
#include <string>

#include "base/time.hpp"
#include "http/cors.hpp"
#include "http/head.hpp"

namespace latchkey::http {

struct Settings {
  std::string address = "127.0.0.1";  // an IPv4 or IPv6 address, not a name
  std::uint16_t port = 0;             // 0 lets the kernel choose; Server::port() tells
  unsigned threads = 2;               // each with its own listener and its own connections

  HeadLimits head;                               // beyond them 431
  std::size_t body_bytes_max = 2 * 1024 * 1024;  // beyond it 413, before reading where Content-Length says so

  Duration head_deadline = std::chrono::seconds{10};   // for a whole head, from accept or its first byte; then 408
  Duration body_deadline = std::chrono::seconds{30};   // for a whole body, plus its size at the rate below; then 408
  std::size_t bytes_per_second_min = 64 * 1024;        // what a large body or answer must move at
  Duration idle_deadline = std::chrono::seconds{60};   // between two requests; then closed
  Duration write_deadline = std::chrono::seconds{30};  // for the client to take an answer, plus its size at that rate
  Duration linger_deadline = std::chrono::seconds{2};  // for the client to close after our last answer
  Duration stop_deadline = std::chrono::seconds{10};   // for requests in flight when the server stops
  Duration tick = std::chrono::milliseconds{250};      // how coarse all these deadlines are

  std::size_t connections_max = 10'000;  // beyond it 503 and closed
  std::size_t in_flight_max = 10'000;    // requests whose answer is outstanding; beyond it 503

  CorsSettings cors;  // off by default
};

}  // namespace latchkey::http
