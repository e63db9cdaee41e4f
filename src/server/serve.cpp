#include "server/serve.hpp"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <thread>

#include "pg/dsn.hpp"
#include "server/address_file.hpp"
#include "server/service.hpp"
#include "server/startup_signal_guard.hpp"

namespace latchkey {
namespace {

sigset_t stop_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  // SIGHUP means that the terminal is closed. Under nohup the signal is ignored, and stays ignored.
  struct sigaction hang_up{};
  sigaction(SIGHUP, nullptr, &hang_up);
  if (hang_up.sa_handler != SIG_IGN) sigaddset(&set, SIGHUP);
  return set;
}

int wait_for_signal() {
  const sigset_t set = stop_signals();
  int signal = 0;
  while (sigwait(&set, &signal) != 0) {
  }
  return signal;
}

void log_to_stderr() {
  spdlog::set_level(spdlog::level::info);
  if (spdlog::get("latchkey")) return;
  spdlog::set_default_logger(spdlog::stderr_color_mt("latchkey"));
}

void print_banner(std::ostream& out, const Service& service, const ServeSettings& settings) {
  out << "Latchkey serves on " << service.url() << "\n"
      << "  store      " << service.store_name() << "\n"
      << "  data       " << settings.data_dir << "\n"
      << "  admin key  " << service.admin_key_file() << "\n"
      << "  API        " << service.url() << "/openapi.json\n"
      << "Stop with Ctrl-C.\n"
      << std::flush;
  if (out) return;
  spdlog::warn("cannot write the startup banner to stdout; serving on {}", service.url());
  out.clear();
}

// Commands find a server on PostgreSQL by the address file, and a server on SQLite by the store's lock file.
std::unique_ptr<ServerAddressFile> write_address_file(const ServeSettings& settings, const std::string& url) {
  if (!pg::names_postgres(settings.store)) return nullptr;
  if (has_store_of_its_own(settings.data_dir) && !ServerAddressFile::find(settings.data_dir)) {
    spdlog::warn(
        "{}/latchkey.db is a store of its own: commands with this data folder continue to use it, not PostgreSQL, "
        "unless they get --server {}",
        settings.data_dir, url);
    return nullptr;
  }
  return std::make_unique<ServerAddressFile>(settings.data_dir, url);
}

// An embedded store in the folder of a server on PostgreSQL would not have that server's runs.
std::unexpected<Error> refuse_folder(const std::string& data_dir, const ServerAddressFile::Found& found) {
  if (found.address)
    return fail(Code::STORE_LOCKED,
                "the server on PostgreSQL at " + *found.address + " has " + data_dir + " as its data folder");
  return fail(Code::USAGE, data_dir +
                               " is the data folder of a server on PostgreSQL: say its --store postgres://… (to begin "
                               "an embedded store here, remove " +
                               ServerAddressFile::path_in(data_dir) + ")");
}

}  // namespace

Result<void> serve(ServeSettings settings, std::ostream& out) {
  log_to_stderr();
  const sigset_t signals = stop_signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);  // before any thread starts, because threads inherit the mask
  signal(SIGXFSZ, SIG_IGN);  // over the file size limit (ulimit -f) a write then fails, as on a full disk
  if (settings.store.empty())
    if (auto found = ServerAddressFile::find(settings.data_dir)) return refuse_folder(settings.data_dir, *found);
  StartupSignalGuard watch(signals);
  auto service = Service::start(settings);
  const auto early = watch.finish();
  if (!service) return std::unexpected(service.error());
  if (settings.insecure_listen) spdlog::warn("listening without TLS: others on the network can read tokens and data");
  auto address_file = early ? nullptr : write_address_file(settings, (*service)->url());
  if (!early) print_banner(out, **service, settings);
  const int signal = early ? *early : wait_for_signal();
  spdlog::info("stopping after the requests in flight; a second signal ends the process at once");
  std::thread([] { _exit(128 + wait_for_signal()); }).detach();
  address_file.reset();
  (*service)->stop();
  spdlog::info("stopped by signal {}", signal);
  return {};
}

}  // namespace latchkey
