// OtherSession: a session beside a measurement that commits a row of its own table in a loop and needs no lock of
// another session. Its longest delay shows how long the machine stalls (a disk, a hypervisor, a dump that uses the
// processor), independent of the store. Its loop has its own thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <thread>

#include "base/clock.hpp"
#include "support/postgres/pg_client.hpp"

namespace latchkey {

class OtherSession {
 public:
  OtherSession(const std::string& url, Clock& clock) : session_(url), clock_(clock) {
    session_.execute("CREATE TABLE IF NOT EXISTS public.other_session (number int)");
    thread_ = std::jthread([this](std::stop_token stop) {
      while (!stop.stop_requested()) {
        const Duration since = clock_.elapsed();
        // The pause leaves the processor to other threads. Its excess counts as a delay, too.
        session_.execute("INSERT INTO public.other_session VALUES (1)");
        session_.execute("SELECT pg_sleep(0.01)");
        longest_ms_ = std::max(longest_ms_.load(), (clock_.elapsed() - since).count());
      }
    });
  }
  // The longest round so far.
  Duration longest() const { return Duration{longest_ms_.load()}; }
  // Ends the loop after the current round. Returns the longest round.
  Duration finish() {
    thread_ = {};
    return longest();
  }

 private:
  PgClient session_;
  Clock& clock_;
  std::atomic<std::int64_t> longest_ms_{0};
  std::jthread thread_;
};

}  // namespace latchkey
