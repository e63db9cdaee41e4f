// LockLog: the lock waits and lock timeouts in the log of a PgCluster: which sessions waited for which others. Unlike
// measured time, the log is correct on a busy machine, because it contains only real lock waits.
#pragma once

#include <algorithm>
#include <cstdint>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "support/postgres/pg_client.hpp"
#include "support/postgres/pg_cluster.hpp"

namespace latchkey {

class LockLog {
 public:
  // Settings for the cluster: the server logs a session that waits this long for a lock. Autovacuum is off, because it
  // takes locks, too.
  static std::vector<std::string> settings(Duration wait) {
    return {"log_lock_waits=on", "log_connections=on", "log_line_prefix=%a %p ", "autovacuum=off",
            "deadlock_timeout=" + std::to_string(wait.count()) + "ms"};
  }

  // Evaluates the log from now on.
  explicit LockLog(const PgCluster& server) : server_(&server), from_(server.log().size()) {}

  // The application names of the sessions that waited for this one.
  std::set<std::string> waiters_of(const PgClient& session) const {
    std::set<std::string> names;
    for (const auto& [name, holders, text] : waits())
      if (holders.contains(session.backend())) names.insert(name);
    return names;
  }
  // The lock waits of sessions with that name for sessions with other names.
  std::vector<std::string> waits_for_others(const std::string& name) const {
    std::set<int> own = sessions(name);
    std::vector<std::string> found;
    for (const auto& [waiter, holders, text] : waits())
      if (waiter == name && !std::ranges::includes(own, holders)) found.push_back(text);
    return found;
  }
  // The number of lock timeouts of sessions with that name. A lock timeout that is shorter than the setting of
  // settings() leaves no lock wait in the log.
  std::uint64_t count_lock_timeouts(const std::string& name) const { return lock_timeouts(name).size(); }
  // The backend of each lock timeout.
  std::multiset<int> lock_timeouts(const std::string& name) const {
    const std::string text = new_entries();
    const std::regex line("(?:^|\n)" + name + " (\\d+) ERROR:  canceling statement due to lock timeout");
    std::multiset<int> all;
    for (std::sregex_iterator at(text.begin(), text.end(), line), end; at != end; ++at) all.insert(std::stoi((*at)[1]));
    return all;
  }

 private:
  struct Wait {
    std::string name;
    std::set<int> holders;
    std::string text;
  };

  std::string new_entries() const { return server_->log().substr(from_); }
  std::vector<Wait> waits() const {
    static const std::regex kWait(
        "(\\w+) \\d+ (LOG:  process \\d+ still waiting for [^\n]*\n)"
        "[^\n]*DETAIL:  Process(?:es)? holding the lock: ([\\d, ]+)\\. Wait queue[^\n]*");
    static const std::regex kNumber("\\d+");
    const std::string text = new_entries();
    std::vector<Wait> all;
    for (std::sregex_iterator at(text.begin(), text.end(), kWait), end; at != end; ++at) {
      Wait wait{(*at)[1], {}, at->str()};
      const std::string holders = (*at)[3];
      for (std::sregex_iterator pid(holders.begin(), holders.end(), kNumber); pid != end; ++pid)
        wait.holders.insert(std::stoi(pid->str()));
      all.push_back(std::move(wait));
    }
    return all;
  }
  std::set<int> sessions(const std::string& name) const {
    const std::regex line("(\\d+) LOG:  connection authorized: [^\n]* application_name=" + name + "\n");
    const std::string text = server_->log();
    std::set<int> all;
    for (std::sregex_iterator at(text.begin(), text.end(), line), end; at != end; ++at) all.insert(std::stoi((*at)[1]));
    return all;
  }

  const PgCluster* server_;
  std::size_t from_;
};

}  // namespace latchkey
