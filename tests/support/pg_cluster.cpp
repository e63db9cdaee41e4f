#include "support/pg_cluster.hpp"

#include <poll.h>
#include <pwd.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <stdexcept>

#include "support/pg_client.hpp"
#include "support/pg_program.hpp"

namespace latchkey {
namespace {

constexpr int kPatienceMs = 30'000;

class File {
 public:
  explicit File(int number) : number_(number) { LK_ASSERT(number >= 0); }
  ~File() { ::close(number_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int number() const { return number_; }

 private:
  int number_;
};

// The server keeps its state in the last line of this file.
bool says_ready(const std::string& file) {
  std::ifstream in(file);
  std::string line, last;
  for (int count = 0; std::getline(in, line); ++count)
    if (count == 7) last = line;
  return last.starts_with("ready") || last.starts_with("standby");
}

}  // namespace

PgCluster::PgCluster(Unmade, std::vector<std::string> settings)
    : settings_(std::move(settings)), port_(find_free_port()) {
  if (const passwd* user = ::getpwnam("postgres"); user && ::geteuid() == 0)
    LK_ASSERT(::chown(folder_.path().c_str(), user->pw_uid, user->pw_gid) == 0);
}

PgCluster::PgCluster(std::vector<std::string> settings) : PgCluster(Unmade{}, std::move(settings)) {
  run_pg_program(
      {pg_program("initdb"), "-D", data(), "-U", "latchkey", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"},
      folder_.file("initdb.log"));
  start();
}

std::unique_ptr<PgCluster> PgCluster::make_standby(const PgCluster& primary, std::vector<std::string> settings) {
  std::unique_ptr<PgCluster> standby(new PgCluster(Unmade{}, std::move(settings)));
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

// fsync=off: these servers are killed, the machine under them is not.
void PgCluster::start() {
  std::vector<std::string> words{pg_program("postgres"), "-D", data(), "-p", std::to_string(port_)};
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
  const File changes(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  LK_ASSERT(::inotify_add_watch(changes.number(), data().c_str(), IN_MODIFY | IN_CREATE | IN_CLOSE_WRITE) >= 0);
  const File process(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
  // What the last server left there is cleared before the new one's first line is written.
  while (true) {
    std::ifstream in(file);
    long owner = 0;
    if (in >> owner && owner == pid_ && says_ready(file)) return;
    pollfd files[] = {{changes.number(), POLLIN, 0}, {process.number(), POLLIN, 0}};
    const int heard = ::poll(files, 2, kPatienceMs);
    if (heard <= 0 || files[1].revents != 0) break;
    char events[4096];
    while (::read(changes.number(), events, sizeof events) > 0) {
    }
  }
  throw std::runtime_error("PostgreSQL did not start: " + log());
}

std::string PgCluster::log() const {
  std::ifstream in(folder_.file("postgres.log"));
  return {std::istreambuf_iterator<char>(in), {}};
}

void PgCluster::promote() { PgClient(url()).execute("SELECT pg_promote(true, 60)"); }

std::string PgCluster::url(const std::string& database) const {
  return "postgres://latchkey@127.0.0.1:" + std::to_string(port_) + "/" + database;
}

}  // namespace latchkey
