#include "support/pg_bouncer.hpp"

#include <pwd.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <stdexcept>
#include <thread>

#include "support/pg_client.hpp"
#include "support/pg_program.hpp"

namespace latchkey {

PgBouncer::PgBouncer(int server_port, int pool, const std::vector<std::string>& users) : port_(find_free_port()) {
  if (const passwd* user = ::getpwnam("postgres"); user && ::geteuid() == 0)
    LK_ASSERT(::chown(folder_.path().c_str(), user->pw_uid, user->pw_gid) == 0);
  std::ofstream known(folder_.file("users"));
  for (const std::string& user : users) known << '"' << user << "\" \"\"\n";
  known.close();
  std::ofstream(folder_.file("pgbouncer.ini")) << "[databases]\n"
                                               << "* = host=127.0.0.1 port=" << server_port << "\n"
                                               << "[pgbouncer]\n"
                                               << "pool_mode = transaction\n"
                                               << "default_pool_size = " << pool << "\n"
                                               << "max_client_conn = 200\n"
                                               << "listen_addr = 127.0.0.1\n"
                                               << "listen_port = " << port_ << "\n"
                                               << "unix_socket_dir =\n"
                                               << "auth_type = trust\n"
                                               << "auth_file = " << folder_.file("users") << "\n"
                                               << "admin_users = latchkey\n";
  start();
}

PgBouncer::~PgBouncer() { stop(); }

void PgBouncer::start() {
  pid_ = start_pg_program({"/usr/sbin/pgbouncer", folder_.file("pgbouncer.ini")}, folder_.file("pgbouncer.log"));
  // It gives no sign when it listens.
  for (int tries = 0; tries < 2000; ++tries) {
    try {
      PgClient(url("pgbouncer")).execute("SHOW VERSION");
      return;
    } catch (const std::runtime_error&) {
      std::this_thread::sleep_for(std::chrono::milliseconds{5});
    }
  }
  std::ifstream log(folder_.file("pgbouncer.log"));
  throw std::runtime_error("PgBouncer did not start: " + std::string(std::istreambuf_iterator<char>(log), {}));
}

void PgBouncer::stop() {
  ::kill(pid_, SIGTERM);
  wait_for_program(pid_);
}

void PgBouncer::restart() {
  stop();
  start();
}

std::string PgBouncer::url(const std::string& database, const std::string& user) const {
  return "postgres://" + user + "@127.0.0.1:" + std::to_string(port_) + "/" + database;
}

}  // namespace latchkey
