// A server on a port that the kernel chooses, for the HTTP tests.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "http/server.hpp"
#include "support/raw_client.hpp"

namespace latchkey::http {

using testing::RawClient;

class HttpTest : public ::testing::Test {
 protected:
  void start(Handler handler, Settings settings = {}) {
    auto started = Server::start(std::move(settings), std::move(handler), clock_);
    ASSERT_TRUE(started) << to_string(started.error());
    server_ = std::move(*started);
  }
  std::uint16_t port() const { return server_->port(); }

  // The handler of most tests: it replies with the request's method, target and body.
  static void echo(Request& request, Reply reply) {
    reply.send({.content_type = "text/plain",
                .body = std::string(request.method) + " " + std::string(request.target) + " " + request.take_body()});
  }

  SystemClock clock_;
  std::unique_ptr<Server> server_;
};

// Returns the body of a response.
inline std::string body_of(const std::string& response) {
  const std::size_t end = response.find("\r\n\r\n");
  return end == std::string::npos ? "(no response)" : response.substr(end + 4);
}

inline int status_of(const std::string& response) {
  return response.starts_with("HTTP/1.1 ") ? std::stoi(response.substr(9, 3)) : 0;
}

inline const std::string kGet = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

// Short deadlines, for tests that wait until a deadline passes.
inline Settings impatient() {
  using namespace std::chrono_literals;
  return {.head_deadline = 250ms,
          .body_deadline = 250ms,
          .bytes_per_second_min = 1024 * 1024 * 1024,
          .idle_deadline = 250ms,
          .linger_deadline = 200ms,
          .tick = 10ms};
}

}  // namespace latchkey::http
