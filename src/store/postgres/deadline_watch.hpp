// DeadlineWatch: asks the database once a second for the next deadline, which other servers may have written before
// they died. The same round trip reads the clock, detects another server, and announces this one. The store's thread.
#pragma once

#include <memory>

#include "base/alarm.hpp"
#include "store/postgres/clock_sync.hpp"
#include "store/postgres/connector.hpp"
#include "store/postgres/deadline_tracker.hpp"
#include "store/postgres/server_identity.hpp"

namespace latchkey::pg {

class DeadlineWatch {
 public:
  DeadlineWatch(Connector& connector, ServerIdentity& identity, ClockSync& clock, DeadlineTracker& deadlines,
                Duration reply_max, const boost::asio::any_io_executor& executor)
      : connector_(connector),
        identity_(identity),
        clock_(clock),
        deadlines_(deadlines),
        reply_max_(reply_max),
        timer_(executor),
        wake_(executor) {}

  // Until stop().
  Task<void> run();
  void stop();

 private:
  static constexpr Duration kEvery = std::chrono::seconds{1};

  Task<void> poll();
  Task<void> announce_server();

  Connector& connector_;
  ServerIdentity& identity_;
  ClockSync& clock_;
  DeadlineTracker& deadlines_;
  const Duration reply_max_;
  Limit timer_;
  Alarm wake_;
  std::unique_ptr<Connection> connection_;
  bool is_stopped_ = false;
};

}  // namespace latchkey::pg
