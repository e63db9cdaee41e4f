// A whole server in the test's own folder, and a client for it. LATCHKEY_TEST_STORE=postgres in the environment runs
// the same tests on PostgreSQL.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <simdjson.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>
#include <string>

#include "http/client.hpp"
#include "http/target.hpp"
#include "server/service.hpp"
#include "support/folder.hpp"
#include "support/postgres/pg_server.hpp"

namespace latchkey {

inline bool is_on_postgres() {
  const char* const store = std::getenv("LATCHKEY_TEST_STORE");
  return store && std::string_view(store) == "postgres";
}

// A response. `at("/run/id")` reads the body by JSON pointer: strings unquoted, everything else as its text.
struct Heard {
  int status = 0;
  std::string body;
  std::vector<http::ClientHeader> headers;

  std::string at(std::string_view pointer) const {
    simdjson::dom::parser parser;
    simdjson::dom::element element;
    if (parser.parse(body).at_pointer(pointer).get(element)) return "(none)";
    std::string_view text;
    if (element.get(text) == simdjson::SUCCESS) return std::string(text);
    return simdjson::minify(element);
  }
  bool has(std::string_view pointer) const { return at(pointer) != "(none)"; }
  std::optional<std::string> header(std::string_view name) const {
    const http::ClientResponse response{status, headers, {}};
    const auto found = response.find(name);
    return found ? std::optional(std::string(*found)) : std::nullopt;
  }
};
inline void PrintTo(const Heard& heard, std::ostream* out) { *out << heard.status << " " << heard.body; }

class Caller {
 public:
  Caller(const std::string& url, std::string token)
      : client_(*http::parse_url(url), clock_), token_(std::move(token)) {}

  Heard call(std::string_view method, std::string_view target, std::string_view body = "",
             std::vector<http::ClientHeader> headers = {}) {
    if (!token_.empty()) headers.push_back({"Authorization", "Bearer " + token_});
    if (!body.empty()) headers.push_back({"Content-Type", "application/json"});
    auto response = client_.call(method, target, headers, body, std::chrono::seconds{30});
    if (!response) {
      ADD_FAILURE() << method << " " << target << ": " << to_string(response.error());
      return {};
    }
    return {response->status, std::move(response->body), std::move(response->headers)};
  }
  Heard get(std::string_view target) { return call("GET", target); }
  Heard post(std::string_view target, std::string_view body = "", std::vector<http::ClientHeader> headers = {}) {
    return call("POST", target, body, std::move(headers));
  }
  // Claims a key of function f; `more` holds further members, each with a leading comma.
  Heard claim(std::string_view key, std::string_view more = "") {
    return post("/v1/runs", R"({"function":"f","key":")" + std::string(key) + "\"" + std::string(more) + "}");
  }
  // POST /v1/runs/{id}/{verb} with the fence of `won`.
  Heard settle(const Heard& won, std::string_view verb, std::string_view more = "") {
    return post("/v1/runs/" + won.at("/run/id") + "/" + std::string(verb),
                R"({"fence":)" + won.at("/fence") + std::string(more) + "}");
  }
  http::Client& client() { return client_; }

 private:
  SystemClock clock_;
  http::Client client_;
  std::string token_;
};

// The machine's clock with its wall time shifted. A server on PostgreSQL adds its own elapsed time to a wall time that
// it read from the database. For that server, elapsed time is shifted too. The extra 2 % makes up for the slower rate
// of a server clock that is ahead of the database.
class ShiftedClock final : public Clock {
 public:
  Instant now() override { return system_.now() + Duration{shift_ms_.load()}; }
  Duration elapsed() override {
    const std::int64_t shift = shift_ms_;
    return system_.elapsed() + Duration{is_on_postgres() ? shift + shift / 50 : 0};
  }
  Task<void> wait(Duration span) override { return system_.wait(span); }
  void advance(Duration span) { shift_ms_ += span.count(); }

 private:
  SystemClock system_;
  std::atomic<std::int64_t> shift_ms_{0};
};

class ServiceTest : public ::testing::Test {
 protected:
  ~ServiceTest() override {
    admin_.reset();
    service_.reset();
    if (!settings_.store.empty()) PgServer::instance().give_back(settings_.store);
  }
  void SetUp() override { start(); }

  void start() {
    if (is_on_postgres() && settings_.store.empty()) settings_.store = PgServer::instance().borrow_database();
    settings_.data_dir = folder_.file("data");
    settings_.listen = "127.0.0.1:0";
    auto started = Service::start(settings_, clock_);
    ASSERT_TRUE(started) << to_string(started.error());
    service_ = std::move(*started);
    std::ifstream(service_->admin_key_file()) >> admin_key_;
    admin_.emplace(service_->url(), admin_key_);
  }
  void restart() {
    admin_.reset();
    service_.reset();
    start();
  }
  Caller caller(std::string token) { return Caller(service_->url(), std::move(token)); }
  // Creates a token; `tenants` is JSON.
  std::string make_token(std::string_view role, std::string_view tenants) {
    const Heard made =
        admin().post("/v1/tokens", R"({"role":")" + std::string(role) + R"(","tenants":)" + std::string(tenants) + "}");
    EXPECT_EQ(made.status, 201) << made.body;
    return made.at("/token");
  }
  Caller& admin() { return *admin_; }
  // The server may close an idle connection at the moment of a write, so the next call uses a new connection.
  void pass_time(Duration span) {
    clock_.advance(span);
    admin_.emplace(service_->url(), admin_key_);
  }

  Folder folder_;
  ServeSettings settings_;
  ShiftedClock clock_;
  std::unique_ptr<Service> service_;
  std::string admin_key_;
  std::optional<Caller> admin_;
};

}  // namespace latchkey
