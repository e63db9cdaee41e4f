#include "support/pg_server.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <libpq-fe.h>
#include <netinet/in.h>
#include <pwd.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

namespace latchkey {
namespace {

constexpr const char* kPrograms = "/usr/lib/postgresql/15/bin/";

int free_port() {
  const int file = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t size = sizeof address;
  LK_ASSERT(::bind(file, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  LK_ASSERT(::getsockname(file, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  ::close(file);
  return ntohs(address.sin_port);
}

// PostgreSQL does not run as root: then it is the package's own user.
pid_t start_program(std::vector<std::string> arguments, const std::string& log) {
  std::vector<char*> words;
  for (std::string& word : arguments) words.push_back(word.data());
  words.push_back(nullptr);
  const passwd* user = ::geteuid() == 0 ? ::getpwnam("postgres") : nullptr;
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  const int out = ::open(log.c_str(), O_CREAT | O_WRONLY | O_APPEND, 0666);
  ::dup2(out, 1);
  ::dup2(out, 2);
  if (user && (::setgid(user->pw_gid) != 0 || ::setuid(user->pw_uid) != 0)) ::_exit(126);
  // With the test program it goes too, however that ends.
  ::prctl(PR_SET_PDEATHSIG, SIGQUIT);
  if (::getppid() != parent) ::_exit(126);
  ::execv(words.front(), words.data());
  ::_exit(127);
}

int wait_for(pid_t pid) {
  int status = 0;
  ::waitpid(pid, &status, 0);
  return status;
}

void execute(const std::string& url, const std::string& sql) {
  const std::unique_ptr<PGconn, decltype(&PQfinish)> connection(PQconnectdb(url.c_str()), &PQfinish);
  const std::unique_ptr<PGresult, decltype(&PQclear)> result(PQexec(connection.get(), sql.c_str()), &PQclear);
  if (PQresultStatus(result.get()) != PGRES_COMMAND_OK) throw std::runtime_error(PQerrorMessage(connection.get()));
}

}  // namespace

PgServer& PgServer::instance() {
  static PgServer server;
  return server;
}

PgServer::PgServer() {
  if (const passwd* user = ::getpwnam("postgres"); user && ::geteuid() == 0)
    LK_ASSERT(::chown(folder_.path().c_str(), user->pw_uid, user->pw_gid) == 0);
  const pid_t setting_up = start_program({std::string(kPrograms) + "initdb", "-D", folder_.file("data"), "-U",
                                          "latchkey", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"},
                                         folder_.file("initdb.log"));
  if (wait_for(setting_up) != 0) throw std::runtime_error("initdb failed: is postgresql-15 installed?");
  port_ = free_port();
  start();
  wait_until_ready();
}

void PgServer::start() {
  pid_ = start_program({std::string(kPrograms) + "postgres", "-D", folder_.file("data"), "-p", std::to_string(port_),
                        "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-c", "fsync=off", "-c",
                        "max_connections=200", "-c", "log_min_messages=error"},
                       folder_.file("postgres.log"));
}

void PgServer::wait_until_ready() {
  for (int tries = 0; tries < 1000; ++tries) {
    if (PQping(url("postgres").c_str()) == PQPING_OK) return;
    std::this_thread::sleep_for(std::chrono::milliseconds{20});
  }
  throw std::runtime_error("PostgreSQL did not start");
}

PgServer::~PgServer() {
  ::kill(pid_, SIGQUIT);
  wait_for(pid_);
}

std::string PgServer::url(const std::string& database) const {
  return "postgres://latchkey@127.0.0.1:" + std::to_string(port_) + "/" + database;
}

std::string PgServer::borrow_database() {
  if (free_.empty()) {
    const std::string name = "t" + std::to_string(++made_);
    execute(url("postgres"), "CREATE DATABASE " + name);
    return url(name);
  }
  std::string url_of = free_.back();
  free_.pop_back();
  return url_of;
}

void PgServer::give_back(const std::string& url_of) {
  execute(url_of, "SET client_min_messages = error; DROP SCHEMA IF EXISTS latchkey CASCADE");
  free_.push_back(url_of);
}

}  // namespace latchkey
