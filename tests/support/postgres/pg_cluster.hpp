// PgCluster: one PostgreSQL 15 from Debian's package, owned by one test. Its data is in a temporary folder. It listens
// on a loopback port, which stays reserved during restarts. It can have a streaming standby.
//
// Start and restart it from a thread that outlives it: the kernel kills the server when that thread ends.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "support/folder.hpp"
#include "support/reserved_port.hpp"

namespace latchkey {

// fast: the server ends its sessions and writes all committed data. immediate: like a crash; the next start recovers.
enum class PgStop { fast, immediate };

class PgCluster {
 public:
  // `settings` are NAME=value, for the server's command line. Returns when the server accepts connections. Throws if
  // the cluster cannot be created.
  explicit PgCluster(std::vector<std::string> settings = {});
  // A standby that replicates `primary` under the application name `standby`.
  static std::unique_ptr<PgCluster> make_standby(const PgCluster& primary, std::vector<std::string> settings = {});
  ~PgCluster();
  PgCluster(const PgCluster&) = delete;
  PgCluster& operator=(const PgCluster&) = delete;

  void stop(PgStop how);
  void start();
  // Starts with other settings, also for later starts.
  void start(std::vector<std::string> settings);
  // Promotes a standby to a primary on a new timeline. Returns when it accepts writes.
  void promote();

  int port() const { return port_.number(); }
  // The whole log.
  std::string log() const;
  std::string url(const std::string& database = "postgres") const;

 private:
  struct WithoutData {};
  PgCluster(WithoutData, std::vector<std::string> settings);
  std::string data() const { return folder_.file("data"); }
  void wait_until_ready();

  const Folder folder_;
  const ReservedPort port_;
  std::vector<std::string> settings_;
  pid_t pid_ = -1;
};

}  // namespace latchkey
