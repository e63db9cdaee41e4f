#include "support/postgres/pg_cluster.hpp"

#include <linux/magic.h>
#include <pwd.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <stdexcept>

#include "support/folder_watch.hpp"
#include "support/postgres/pg_client.hpp"
#include "support/postgres/pg_program.hpp"

namespace latchkey {
namespace {

// The server writes its state into line 8 of this file.
bool is_marked_ready(const std::string& file) {
  std::ifstream in(file);
  std::string line, last;
  for (int count = 0; std::getline(in, line); ++count)
    if (count == 7) last = line;
  return last.starts_with("ready") || last.starts_with("standby");
}

// The clusters run without fsync, so a file system in memory is sufficient, if there is enough memory. On a disk, a
// fifth of the time is spent on creating and removing their thousands of files.
std::filesystem::path choose_folder() {
  const std::filesystem::path memory = "/dev/shm";
  constexpr std::uintmax_t kPlenty = 8ull << 30;
  std::error_code failed;
  const auto room = std::filesystem::space(memory, failed);
  struct statfs kind{};
  const bool is_memory = !failed && ::statfs(memory.c_str(), &kind) == 0 && kind.f_type == TMPFS_MAGIC;
  const bool may_write = ::access(memory.c_str(), W_OK | X_OK) == 0;
  return is_memory && may_write && room.available >= kPlenty ? memory : std::filesystem::temp_directory_path();
}

}  // namespace

PgCluster::PgCluster(WithoutData, std::vector<std::string> settings)
    : folder_(choose_folder()), settings_(std::move(settings)) {
  if (const passwd* user = ::getpwnam("postgres"); user && ::geteuid() == 0)
    LK_ASSERT(::chown(folder_.path().c_str(), user->pw_uid, user->pw_gid) == 0);
}

PgCluster::PgCluster(std::vector<std::string> settings) : PgCluster(WithoutData{}, std::move(settings)) {
  run_pg_program(
      {pg_program("initdb"), "-D", data(), "-U", "latchkey", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"},
      folder_.file("initdb.log"));
  start();
}

std::unique_ptr<PgCluster> PgCluster::make_standby(const PgCluster& primary, std::vector<std::string> settings) {
  std::unique_ptr<PgCluster> standby(new PgCluster(WithoutData{}, std::move(settings)));
  run_pg_program({pg_program("pg_basebackup"), "-d", primary.url() + "?application_name=standby", "-D", standby->data(),
                  "-X", "stream", "-c", "fast", "-R", "--no-sync"},
                 standby->folder_.file("basebackup.log"));
  standby->start();
  return standby;
}

PgCluster::~PgCluster() {
  if (pid_ > 0) stop(PgStop::immediate);
}

void PgCluster::stop(PgStop how) {
  LK_ASSERT(pid_ > 0);
  ::kill(pid_, how == PgStop::fast ? SIGINT : SIGQUIT);
  wait_for_program(pid_);
  pid_ = -1;
}

void PgCluster::start(std::vector<std::string> settings) {
  settings_ = std::move(settings);
  start();
}

// fsync=off: tests kill these servers, but the machine does not lose power.
void PgCluster::start() {
  std::vector<std::string> words{pg_program("postgres"), "-D", data(), "-p", std::to_string(port())};
  for (const char* setting : {"listen_addresses=127.0.0.1", "unix_socket_directories=", "fsync=off",
                              "max_connections=200", "log_min_messages=error"}) {
    words.push_back("-c");
    words.push_back(setting);
  }
  for (const std::string& setting : settings_) {
    words.push_back("-c");
    words.push_back(setting);
  }
  pid_ = start_pg_program(std::move(words), folder_.file("postgres.log"));
  wait_until_ready();
}

void PgCluster::wait_until_ready() {
  const std::string file = data() + "/postmaster.pid";
  const FolderWatch watch(data());
  // The new server truncates the file of the last one before it writes its first line.
  const auto is_ready = [&] {
    std::ifstream in(file);
    long owner = 0;
    return in >> owner && owner == pid_ && is_marked_ready(file);
  };
  if (!watch.wait(pid_, is_ready)) throw std::runtime_error("PostgreSQL did not start: " + log());
}

std::string PgCluster::log() const {
  std::ifstream in(folder_.file("postgres.log"));
  return {std::istreambuf_iterator<char>(in), {}};
}

void PgCluster::promote() { PgClient(url()).execute("SELECT pg_promote(true, 60)"); }

std::string PgCluster::url(const std::string& database) const {
  return "postgres://latchkey@" + port_.host() + "/" + database;
}

}  // namespace latchkey
