// PgWalk: a fault walk on PostgreSQL. What is told again and again, with the connection cut about its nth COMMIT, for
// every n until none is left to cut.
#pragma once

#include <spdlog/spdlog.h>

#include "conformance/store_test.hpp"
#include "support/postgres/fault_proxy.hpp"
#include "support/postgres/pg_stores.hpp"
#include "support/stride.hpp"

namespace latchkey {

struct NamedFaults {
  const char* name;
  std::deque<ConnectionFault> faults;  // the first of them at the nth COMMIT, the next at those after it
  std::uint64_t stride = 1;            // of n: those that take longest go in longer steps
  enum class Where : std::uint8_t { everywhere, in_purges } where = Where::everywhere;
};
inline void PrintTo(const NamedFaults& faults, std::ostream* out) { *out << faults.name; }

// Waits a tenth of the time: a store that has lost its connection pauses before the next, which nothing here needs.
class HastyClock final : public Clock {
 public:
  Instant now() override { return real_.now(); }
  Duration elapsed() override { return real_.elapsed(); }
  Task<void> wait(Duration span) override { return real_.wait(span / 10); }

 private:
  SystemClock real_;
};

class PgWalk : public PostgresStores, public testing::WithParamInterface<NamedFaults> {
 public:
  static std::vector<NamedFaults> kinds() {
    return {{"CommitNotSent", {{FaultAt::commit_asked, FaultHow::close}}},
            {"CommitNotAnswered", {{FaultAt::commit_answered, FaultHow::close}}},
            // And then the question whether it was kept, before it arrives and after it was answered.
            {"CommitNotAnsweredNorFound",
             {{FaultAt::commit_answered, FaultHow::reset},
              {FaultAt::commit_asked, FaultHow::reset},
              {FaultAt::commit_answered, FaultHow::close}},
             3},
            {"CommitLate",
             {{FaultAt::flight_asked, FaultHow::late, 0, ConnectionFault::kWithTheNext},
              {FaultAt::commit_asked, FaultHow::close}},
             3},
            // All is written and not yet committed, while another reads on behind it.
            {"CommitDelayed",
             {{FaultAt::commit_asked, FaultHow::late, 0, std::chrono::milliseconds{40}}},
             1,
             NamedFaults::Where::in_purges}};
  }
  static std::string name(const testing::TestParamInfo<NamedFaults>& kind) { return kind.param.name; }

 protected:
  enum class Company { none, another };

  PgWalk() { spdlog::set_level(spdlog::level::off); }
  ~PgWalk() override { spdlog::set_level(spdlog::level::info); }

  std::unique_ptr<PostgresStore> open_hasty(const std::string& url_of, PostgresSettings settings) {
    settings.url = url_of;
    auto opened = migrate::open_postgres(std::move(settings), hasty_, random_);
    if (!opened) throw std::runtime_error(to_string(opened.error()));
    return std::move(*opened);
  }
  void empty() {
    if (is_set_up_) PgServer::empty(hand_);
    is_set_up_ = true;
  }
  // COMMITs that went by on the connections that are open.
  std::uint64_t commits() {
    std::uint64_t all = 0;
    for (const PgTraffic& one : proxy_.traffic()) all += one.commits;
    return all;
  }
  void arm(std::uint64_t n) {
    std::deque<ConnectionFault> faults = GetParam().faults;
    faults.front().after = n;
    proxy_.arm(faults);
  }
  // `tell(n)` arms the fault and tells it all. How many COMMITs there were to cut; ends at the first that went wrong.
  std::uint64_t walk(auto tell, std::uint64_t stride, std::uint64_t from = 0) {
    for (std::uint64_t n = from;; n += kStride * stride) {
      const auto fired = proxy_.fired();
      tell(n);
      const bool struck = proxy_.fired() > fired;
      proxy_.arm(std::deque<ConnectionFault>{});
      if (HasFailure()) ADD_FAILURE() << "cut about COMMIT " << n;
      if (!struck || HasFailure()) return n;
    }
  }

  PgClient hand_{url()};
  FaultProxy proxy_{PgServer::instance().port()};

 private:
  bool is_set_up_ = false;
  HastyClock hasty_;
  SystemRandom random_;
};

}  // namespace latchkey
