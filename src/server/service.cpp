#include "server/service.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "api/token_refresher.hpp"
#include "engine/maintenance_thread.hpp"
#include "http/server.hpp"
#include "migrate/open_postgres.hpp"
#include "pg/dsn.hpp"
#include "server/admin_key.hpp"
#include "server/composed_api.hpp"
#include "server/lock_file_refresher.hpp"
#include "store/sqlite/sqlite_store.hpp"
#include "store/sqlite/store_lock.hpp"

namespace latchkey {
namespace {

namespace fs = std::filesystem;

Result<void> make_folder(const std::string& path) {
  if (path.empty()) return fail(Code::INVALID_ARGUMENT, "no data directory was given");
  std::error_code error;
  const fs::path parent = fs::absolute(path).parent_path();
  fs::create_directories(parent, error);
  if (::mkdir(path.c_str(), 0700) == 0 || (errno == EEXIST && fs::is_directory(path, error))) return {};
  return fail(Code::STORE_UNAVAILABLE, "cannot create the data directory " + path + ": " + std::strerror(errno));
}

}  // namespace

// In the order of their dependencies. The last part is destroyed first.
struct Service::Parts {
  explicit Parts(Clock* other) : clock(other ? *other : system_clock) {}

  SystemClock system_clock;
  Clock& clock;
  SystemRandom random;
  std::optional<StoreLock> lock;
  // The engine and the API refer to the store, and its callbacks use them: stop() destroys the store first.
  std::unique_ptr<Store> store;
  std::unique_ptr<Engine> engine;
  std::unique_ptr<ComposedApi> api;
  std::unique_ptr<api::TokenRefresher> token_refresher;
  std::unique_ptr<MaintenanceThread> maintenance;
  std::unique_ptr<http::Server> server;
  std::unique_ptr<LockFileRefresher> lock_refresher;

  void stop() {
    if (store) store->begin_shutdown();
    // Many reads may wait for a remote database. They are refused, because running them would delay the stop.
    if (api && store && store->reads_block()) api->services.blocking_pool.refuse_all();
    if (api) api->waiters.close();  // otherwise the HTTP server would wait for their requests
    server.reset();
    if (api) api->services.blocking_pool.close();
    token_refresher.reset();
    if (maintenance) maintenance->stop();
    store.reset();
    maintenance.reset();
    api.reset();
    engine.reset();
    lock_refresher.reset();
    lock.reset();
  }
};

Service::Service(Clock* clock) : parts_(std::make_unique<Parts>(clock)) {}
Service::~Service() { stop(); }
void Service::stop() { parts_->stop(); }
std::uint16_t Service::port() const { return parts_->server ? parts_->server->port() : 0; }
Engine& Service::engine() { return *parts_->engine; }
std::vector<api::RouteSpec> Service::routes() const { return parts_->api->router.routes(); }

Result<std::unique_ptr<Service>> Service::start(const ServeSettings& settings) { return start_with(settings, nullptr); }
Result<std::unique_ptr<Service>> Service::start(const ServeSettings& settings, Clock& clock) {
  return start_with(settings, &clock);
}

Result<std::unique_ptr<Service>> Service::start_with(const ServeSettings& settings, Clock* clock) {
  const auto at = parse_listen(settings.listen);
  if (!at) return std::unexpected(at.error());
  if (!at->is_loopback && !settings.insecure_listen)
    return fail(Code::INVALID_ARGUMENT, "listening on " + settings.listen +
                                            " would show tokens and data to the network, as there is no TLS: put a "
                                            "proxy in front, or use --insecure-listen");
  std::unique_ptr<Service> service(new Service(clock));
  if (const auto opened = service->open(settings); !opened) return std::unexpected(opened.error());
  if (const auto listening = service->listen(settings, *at); !listening) return std::unexpected(listening.error());
  if (const auto begun = service->begin(settings); !begun) return std::unexpected(begun.error());
  return service;
}

Result<void> Service::open_sqlite(const ServeSettings& settings) {
  store_name_ = find_store_file(settings.store, settings.data_dir);
  auto lock = StoreLock::acquire(store_name_, settings.lock_patience, parts_->clock);
  if (!lock) return std::unexpected(lock.error());
  parts_->lock = std::move(*lock);
  SqliteSettings sqlite = settings.sqlite;
  sqlite.file = store_name_;
  auto store = SqliteStore::open(std::move(sqlite), parts_->clock, parts_->random);
  if (!store) return std::unexpected(store.error());
  parts_->store = std::move(*store);
  return {};
}

// Several servers may share the database, so nothing is locked.
Result<void> Service::open_postgres(const ServeSettings& settings) {
  store_name_ = pg::describe(settings.store).value_or("postgres://");
  auto store = migrate::open_postgres({.url = settings.store}, parts_->clock, parts_->random);
  if (!store) return std::unexpected(store.error());
  parts_->store = std::move(*store);
  return {};
}

Result<void> Service::open(const ServeSettings& settings) {
  if (!settings.store.empty())
    if (auto good = check_store(settings.store); !good) return good;
  if (auto made = make_folder(settings.data_dir); !made) return made;
  const auto opened = pg::names_postgres(settings.store) ? open_postgres(settings) : open_sqlite(settings);
  if (!opened) return opened;
  parts_->engine = std::make_unique<Engine>(*parts_->store, parts_->clock, settings.engine);
  parts_->api = std::make_unique<ComposedApi>(*parts_->engine, parts_->clock, parts_->random);
  return {};
}

Result<void> Service::listen(const ServeSettings& settings, const ListenAddress& at) {
  http::Settings http = settings.http;
  http.address = at.address;
  http.port = at.port;
  http.threads = settings.threads;
  http.cors.origins = settings.cors_origins;
  auto server = http::Server::bind(
      std::move(http),
      [&router = parts_->api->router](http::Request& request, http::Reply reply) {
        router.handle(request, std::move(reply));
      },
      parts_->clock);
  if (!server) return fail(server.error().code, format_address(at.address, at.port) + ": " + server.error().detail);
  parts_->server = std::move(*server);
  url_ = "http://" + format_address(at.address, parts_->server->port());
  return {};
}

// Runs after the port is bound, so that a failed start leaves no token in a shared database.
Result<void> Service::begin(const ServeSettings& settings) {
  admin_key_file_ = (fs::path(settings.data_dir) / "admin.key").string();
  if (auto known = ensure_admin_key(admin_key_file_, *parts_->store, parts_->random); !known) return known;
  if (auto known = parts_->api->services.tokens.refresh(); !known) return known;
  // A remote store may be shared with other servers.
  if (parts_->store->reads_block())
    parts_->token_refresher = std::make_unique<api::TokenRefresher>(parts_->api->services.tokens);
  parts_->server->serve();
  parts_->maintenance = std::make_unique<MaintenanceThread>(*parts_->engine);
  if (!parts_->lock) return {};
  if (auto announced = parts_->lock->announce(url_); !announced) return announced;
  parts_->lock_refresher = std::make_unique<LockFileRefresher>(*parts_->lock);
  return {};
}

}  // namespace latchkey
