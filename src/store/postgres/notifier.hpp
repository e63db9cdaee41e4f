// Notifier: sends NOTIFY for committed work and dead letters, on a connection of its own. Commits that notify serialize
// on a cluster-wide lock, so the batches themselves do not.
//
// Dead letters are sent at once, work at most every 20 ms. A notification that fails is sent again after a second; one
// that is lost with this server is covered by the listeners' polling. The store's thread only.
#pragma once

#include <functional>
#include <memory>
#include <set>

#include "base/alarm.hpp"
#include "base/clock.hpp"
#include "store/postgres/connector.hpp"
#include "store/postgres/pg_tables.hpp"

namespace latchkey::pg {

struct PendingNotifications {
  bool work = false;  // jobs were queued
  std::set<DeadLetterGroup> dead_letters;
};

class Notifier {
 public:
  Notifier(Connector& connector, Clock& host, Duration reply_max, const boost::asio::any_io_executor& executor)
      : connector_(connector), host_(host), reply_max_(reply_max), executor_(executor), wake_(executor) {}

  void enqueue(PendingNotifications notifications);
  // Sends until finish() was called and nothing is pending.
  Task<void> run();
  // No writer is left: what is pending is sent once.
  void finish();

 private:
  static constexpr Duration kWorkEvery = std::chrono::milliseconds{20};
  static constexpr Duration kRetryDelay = std::chrono::seconds{1};

  // Waits until something may be sent; empty when run() is done.
  Task<PendingNotifications> next();
  Task<bool> send(const PendingNotifications& notifications);

  Connector& connector_;
  Clock& host_;
  const Duration reply_max_;
  const boost::asio::any_io_executor executor_;
  Alarm wake_;
  std::unique_ptr<Connection> connection_;
  PendingNotifications pending_;
  Duration work_from_{};  // not before this time
  bool is_finishing_ = false;
};

}  // namespace latchkey::pg
