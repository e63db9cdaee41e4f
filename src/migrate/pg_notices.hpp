// PgNotices: receives PostgreSQL's messages (NOTICE, WARNING, INFO) and reports each once, with the position in the
// file that caused it. Also records whether there was a warning. For the connection's thread.
#pragma once

#include <libpq-fe.h>

#include <functional>
#include <set>
#include <string>

namespace latchkey::migrate {

class PgNotices {
 public:
  explicit PgNotices(std::function<void(const std::string&)> report) : report_(std::move(report)) {}
  PgNotices(const PgNotices&) = delete;
  PgNotices& operator=(const PgNotices&) = delete;

  // Receives the messages of the connection from now on. This object must outlive the connection.
  void listen(PGconn* connection);
  // The current file:line. Empty: messages are not reported, because the user's files did not cause them.
  void set_position(std::string position) { position_ = std::move(position); }
  // A warning came since the last forget().
  bool has_warned() const { return warned_; }
  void forget() { warned_ = false; }

 private:
  void receive(const PGresult* notice);

  const std::function<void(const std::string&)> report_;
  std::string position_;
  std::set<std::string> reported_;
  bool warned_ = false;
};

}  // namespace latchkey::migrate
