// PgCluster: one PostgreSQL 15 of a test's own, from Debian's package: its data in a temporary folder, its process on a
// loopback port, which is kept for it over restarts. It may have a streaming standby.
//
// Start and restart it from a thread that outlives it: the server goes when the thread that started it ends.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "support/folder.hpp"
#include "support/reserved_port.hpp"

namespace latchkey {

// fast: sessions are ended, what is committed is written. immediate: as a crash, recovered from at the next start.
enum class PgStop { fast, immediate };

class PgCluster {
 public:
  // `settings` are NAME=value, for the server's command line. Returns when it accepts connections; throws when it
  // cannot be made.
  explicit PgCluster(std::vector<std::string> settings = {});
  // A copy that follows `primary` under the application name `standby`.
  static std::unique_ptr<PgCluster> make_standby(const PgCluster& primary, std::vector<std::string> settings = {});
  ~PgCluster();
  PgCluster(const PgCluster&) = delete;
  PgCluster& operator=(const PgCluster&) = delete;

  void stop(PgStop how);
  void start();
  // With other settings from now on.
  void start(std::vector<std::string> settings);
  // Makes a standby a primary, on a new timeline; returns when it takes writes.
  void promote();

  int port() const { return port_.number(); }
  // All that it has said.
  std::string log() const;
  std::string url(const std::string& database = "postgres") const;

 private:
  struct Unmade {};
  PgCluster(Unmade, std::vector<std::string> settings);
  std::string data() const { return folder_.file("data"); }
  void wait_until_ready();

  const Folder folder_;
  const ReservedPort port_;
  std::vector<std::string> settings_;
  pid_t pid_ = -1;
};

}  // namespace latchkey
