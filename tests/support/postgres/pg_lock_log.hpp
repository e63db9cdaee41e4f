// LockLog: what a PostgreSQL of the test's own has written down about locks: which sessions waited, for whom. However
// busy the machine is, it names nobody who did not wait for somebody.
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
  // For its command line: whoever waits for a lock for so long is written down. What the server does by itself takes
  // locks, too.
  static std::vector<std::string> settings(Duration wait) {
    return {"log_lock_waits=on", "log_connections=on", "log_line_prefix=%a %p ", "autovacuum=off",
            "deadlock_timeout=" + std::to_string(wait.count()) + "ms"};
  }

  // From now on.
  explicit LockLog(const PgCluster& server) : server_(&server), heard_(server.log().size()) {}

  // The names of those who waited for this one.
  std::set<std::string> waited_for(const PgClient& session) const {
    std::set<std::string> names;
    for (const auto& [name, holders, text] : waits())
      if (holders.contains(session.backend())) names.insert(name);
    return names;
  }
  // What sessions of that name waited for that had been taken by others than them.
  std::vector<std::string> waits_for_others(const std::string& name) const {
    std::set<int> own = sessions(name);
    std::vector<std::string> found;
    for (const auto& [who, holders, text] : waits())
      if (who == name && !std::ranges::includes(own, holders)) found.push_back(text);
    return found;
  }
  // How often sessions of that name gave up waiting, because of lock_timeout. That comes before anything is written
  // down where it is shorter.
  std::uint64_t given_up(const std::string& name) const { return who_gave_up(name).size(); }
  // The same: the session of each time.
  std::multiset<int> who_gave_up(const std::string& name) const {
    const std::string text = heard();
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

  std::string heard() const { return server_->log().substr(heard_); }
  std::vector<Wait> waits() const {
    static const std::regex kWait(
        "(\\w+) \\d+ (LOG:  process \\d+ still waiting for [^\n]*\n)"
        "[^\n]*DETAIL:  Process(?:es)? holding the lock: ([\\d, ]+)\\. Wait queue[^\n]*");
    static const std::regex kNumber("\\d+");
    const std::string text = heard();
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
  std::size_t heard_;
};

}  // namespace latchkey
