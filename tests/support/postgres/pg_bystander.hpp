// Bystander: a session that commits a row of its own, again and again, beside what is measured, and needs nothing that
// anybody holds. How long it takes at worst is the machine's doing (a disk, a hypervisor, a dump that wants the
// processor), not the store's.
#pragma once

#include <algorithm>
#include <atomic>
#include <thread>

#include "base/clock.hpp"
#include "support/postgres/pg_client.hpp"

namespace latchkey {

class Bystander {
 public:
  Bystander(const std::string& url, Clock& clock) : session_(url), clock_(clock) {
    session_.execute("CREATE TABLE IF NOT EXISTS public.bystander (number int)");
    thread_ = std::jthread([this](std::stop_token stop) {
      while (!stop.stop_requested()) {
        const Duration since = clock_.elapsed();
        // The pause leaves the processor to the others; what it is longer than it should be counts.
        session_.execute("INSERT INTO public.bystander VALUES (1)");
        session_.execute("SELECT pg_sleep(0.01)");
        longest_ms_ = std::max(longest_ms_.load(), (clock_.elapsed() - since).count());
      }
    });
  }
  // Until now.
  Duration longest() const { return Duration{longest_ms_.load()}; }
  // The same, with what is under way, which is its last.
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
