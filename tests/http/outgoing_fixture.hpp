// An OutgoingClient, and servers that the test plays itself.
#pragma once

#include <future>
#include <memory>
#include <string>
#include <utility>

#include "http/http_fixture.hpp"
#include "http/outgoing_client.hpp"
#include "support/raw_server.hpp"

namespace latchkey::http {

using testing::RawListener;
using testing::RawPeer;

class OutgoingTest : public HttpTest {
 protected:
  void use(OutgoingSettings settings) { client_ = std::make_unique<OutgoingClient>(std::move(settings), clock_); }
  OutgoingClient& client() {
    if (!client_) use({});
    return *client_;
  }
  std::future<OutgoingResult> begin(OutgoingRequest request, OutgoingClient::CallId* id = nullptr) {
    std::promise<OutgoingResult> promise;
    std::future<OutgoingResult> result = promise.get_future();
    const auto started = client().start(std::move(request), [promise = std::move(promise)](OutgoingResult got) mutable {
      promise.set_value(std::move(got));
    });
    if (id != nullptr) *id = started;
    return result;
  }
  OutgoingResult call(OutgoingRequest request) { return begin(std::move(request)).get(); }

  static std::string url(std::uint16_t port, const std::string& target = "/") {
    return "http://127.0.0.1:" + std::to_string(port) + target;
  }

  std::unique_ptr<OutgoingClient> client_;
};

// "200 body", "NotSent timeout: …", "Unknown aborted: …"
inline std::string to_text(const OutgoingResult& result) {
  const auto failure = [](const char* kind, CallFailure reason, const std::string& detail) {
    static constexpr const char* kNames[] = {"invalid_request", "name_lookup", "connect",           "tls",
                                             "timeout",         "aborted",     "connection_closed", "bad_response"};
    return std::string(kind) + " " + kNames[static_cast<int>(reason)] + ": " + detail;
  };
  if (const auto* response = std::get_if<OutgoingResponse>(&result))
    return std::to_string(response->status) + " " + response->body;
  if (const auto* not_sent = std::get_if<NotSent>(&result))
    return failure("NotSent", not_sent->reason, not_sent->detail);
  const auto& unknown = std::get<Unknown>(result);
  return failure("Unknown", unknown.reason, unknown.detail);
}

// Without the detail, which has times in it.
inline std::string to_kind(const OutgoingResult& result) {
  const std::string text = to_text(result);
  return text.substr(0, text.find(':'));
}

}  // namespace latchkey::http
