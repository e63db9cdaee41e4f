#include "support/postgres/pg_bouncer.hpp"

#include <pwd.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <stdexcept>

#include "support/folder_watch.hpp"
#include "support/postgres/pg_program.hpp"

namespace latchkey {
namespace {

std::string read_text(const std::string& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

PgBouncer::PgBouncer(int server_port, int pool, const std::vector<std::string>& users) : pool_(pool) {
  if (const passwd* user = ::getpwnam("postgres"); user && ::geteuid() == 0)
    LK_ASSERT(::chown(folder_.path().c_str(), user->pw_uid, user->pw_gid) == 0);
  std::ofstream known(folder_.file("users"));
  for (const std::string& user : users) known << '"' << user << "\" \"\"\n";
  known.close();
  write_settings(server_port);
  start();
}

void PgBouncer::write_settings(int server_port) {
  std::ofstream(folder_.file("pgbouncer.ini")) << "[databases]\n"
                                               << "* = host=127.0.0.1 port=" << server_port << "\n"
                                               << "[pgbouncer]\n"
                                               << "pool_mode = transaction\n"
                                               << "default_pool_size = " << pool_ << "\n"
                                               << "max_client_conn = 200\n"
                                               << "listen_addr = 127.0.0.1\n"
                                               << "listen_port = " << port_.number() << "\n"
                                               << "unix_socket_dir =\n"
                                               << "auth_type = trust\n"
                                               << "auth_file = " << folder_.file("users") << "\n"
                                               << "admin_users = latchkey\n";
}

PgBouncer::~PgBouncer() { stop(); }

// The pooler logs when it listens. Log entries of earlier starts do not count.
void PgBouncer::start() {
  const std::string log = folder_.file("pgbouncer.log");
  const auto log_size = read_text(log).size();
  const FolderWatch watch(folder_.path());
  pid_ = start_pg_program({"/usr/sbin/pgbouncer", folder_.file("pgbouncer.ini")}, log);
  if (!watch.wait(pid_, [&] { return read_text(log).find("process up", log_size) != std::string::npos; }))
    throw std::runtime_error("PgBouncer did not start: " + read_text(log));
}

void PgBouncer::stop() {
  ::kill(pid_, SIGTERM);
  wait_for_program(pid_);
}

void PgBouncer::restart() {
  stop();
  start();
}

void PgBouncer::point_at(int server_port) {
  write_settings(server_port);
  const std::string log = folder_.file("pgbouncer.log");
  const auto log_size = read_text(log).size();
  const FolderWatch watch(folder_.path());
  ::kill(pid_, SIGHUP);
  if (!watch.wait(pid_, [&] { return read_text(log).find("SIGHUP", log_size) != std::string::npos; }))
    throw std::runtime_error("PgBouncer did not read its settings: " + read_text(log));
}

std::string PgBouncer::url(const std::string& database, const std::string& user) const {
  return "postgres://" + user + "@" + port_.host() + "/" + database;
}

}  // namespace latchkey
