// PgNotices: what PostgreSQL says besides its answers (NOTICE, WARNING, INFO), told once each with the place in the
// file that it is about; and whether it warned. For the connection's thread.
#pragma once

#include <libpq-fe.h>

#include <functional>
#include <set>
#include <string>

namespace latchkey::migrate {

class PgNotices {
 public:
  explicit PgNotices(std::function<void(const std::string&)> tell) : tell_(std::move(tell)) {}
  PgNotices(const PgNotices&) = delete;
  PgNotices& operator=(const PgNotices&) = delete;

  // From now on; must outlive the connection.
  void listen(PGconn* connection);
  // file:line; empty: nothing is told, as it is about none of the user's files.
  void set_place(std::string place) { place_ = std::move(place); }
  // A warning came since the last forget().
  bool has_warned() const { return warned_; }
  void forget() { warned_ = false; }

 private:
  void hear(const PGresult* notice);

  const std::function<void(const std::string&)> tell_;
  std::string place_;
  std::set<std::string> told_;
  bool warned_ = false;
};

}  // namespace latchkey::migrate
