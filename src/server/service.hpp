// Service: a running server. It creates, owns, starts and stops the store lock, store, engine, maintenance, API and
// HTTP server. No other code of the server names a back end.
//
// start() returns when the server accepts requests. stop() finishes the requests in flight, writes the pending counts,
// closes the store and releases its lock; a second call does nothing. A remote store that does not respond delays
// stop() by a few seconds at most. One thread at a time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "api/route.hpp"
#include "server/settings.hpp"

namespace latchkey {

class Service {
 public:
  // Errors: STORE_LOCKED when another process owns the store, LISTEN_FAILED, INVALID_ARGUMENT, USAGE for an invalid
  // `store`, STORE_UNAVAILABLE, STORE_FORMAT.
  static Result<std::unique_ptr<Service>> start(const ServeSettings& settings);
  // Uses another clock, which must outlive the service.
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
  // For tests that need runs which the API cannot create.
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
