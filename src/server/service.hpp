// Service: a running server. Builds, owns, starts and stops: store lock, store, engine, maintenance, API, HTTP. The only
// place that names a back end.
//
// start() returns when it serves. stop() lets requests in flight be answered, then writes what is to be written behind,
// then closes the store and lets its lock go; a second call does nothing. A store elsewhere that says nothing holds it
// up for a few seconds only. One thread at a time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "api/route.hpp"
#include "server/settings.hpp"

namespace latchkey {

class Service {
 public:
  // STORE_LOCKED when another process owns the store, LISTEN_FAILED, INVALID_ARGUMENT, USAGE for a store that is none,
  // STORE_UNAVAILABLE, STORE_FORMAT.
  static Result<std::unique_ptr<Service>> start(const ServeSettings& settings);
  // With another clock, which must outlive it.
  static Result<std::unique_ptr<Service>> start(const ServeSettings& settings, Clock& clock);
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  void stop();

  std::uint16_t port() const;
  // "http://127.0.0.1:7420"
  const std::string& url() const { return url_; }
  // The file, or the URL without its password.
  const std::string& store_name() const { return store_name_; }
  const std::string& admin_key_file() const { return admin_key_file_; }
  // For tests that need runs the API cannot make.
  Engine& engine();
  // Every route that the server serves.
  std::vector<api::RouteSpec> routes() const;

 private:
  struct Parts;
  explicit Service(Clock* clock);
  static Result<std::unique_ptr<Service>> start_with(const ServeSettings& settings, Clock* clock);
  Result<void> open(const ServeSettings& settings);
  Result<void> open_sqlite(const ServeSettings& settings);
  Result<void> open_postgres(const ServeSettings& settings);
  Result<void> listen(const ServeSettings& settings, const ListenAddress& at);
  Result<void> begin(const ServeSettings& settings);

  std::unique_ptr<Parts> parts_;
  std::string url_;
  std::string store_name_;
  std::string admin_key_file_;
};

}  // namespace latchkey
