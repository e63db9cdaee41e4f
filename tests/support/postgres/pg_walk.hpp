// PgWalk: the fixture of fault walks on PostgreSQL. A test repeats a script with a fault at its nth COMMIT, for every n
// until the script has no such COMMIT.
#pragma once

#include <spdlog/spdlog.h>

#include "conformance/store_test.hpp"
#include "support/postgres/fault_proxy.hpp"
#include "support/postgres/pg_stores.hpp"
#include "support/test_length.hpp"

namespace latchkey {

struct NamedFaults {
  const char* name;
  std::deque<ConnectionFault> faults;  // the first at the nth COMMIT, the others after it
  std::uint64_t stride = 1;            // the step of n; longer for faults that take more time
  enum class Where : std::uint8_t { everywhere, in_purges } where = Where::everywhere;
};
inline void PrintTo(const NamedFaults& faults, std::ostream* out) { *out << faults.name; }

// Delays take a tenth of their time. A store backs off after a lost connection, and no test here depends on that delay.
class FastClock final : public Clock {
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
    return {{"CommitNotSent", {{FaultAt::commit_request, FaultHow::close}}},
            {"CommitReplyLost", {{FaultAt::commit_reply, FaultHow::close}}},
            // The query for the unknown commit fails, too: before it reaches the server, and after its reply.
            {"CommitReplyLostTwice",
             {{FaultAt::commit_reply, FaultHow::reset},
              {FaultAt::commit_request, FaultHow::reset},
              {FaultAt::commit_reply, FaultHow::close}},
             3},
            {"CommitLate",
             {{FaultAt::flight_request, FaultHow::late, 0, ConnectionFault::kWithNextFault},
              {FaultAt::commit_request, FaultHow::close}},
             3},
            // All rows are written and not committed, while another store reads the next slice.
            {"CommitDelayed",
             {{FaultAt::commit_request, FaultHow::late, 0, std::chrono::milliseconds{40}}},
             1,
             NamedFaults::Where::in_purges}};
  }
  static std::string name(const testing::TestParamInfo<NamedFaults>& kind) { return kind.param.name; }

 protected:
  enum class OtherStore { none, present };

  PgWalk() { spdlog::set_level(spdlog::level::off); }
  ~PgWalk() override { spdlog::set_level(spdlog::level::info); }

  std::unique_ptr<PostgresStore> open_fast(const std::string& url_of, PostgresSettings settings) {
    settings.url = url_of;
    auto opened = migrate::open_postgres(std::move(settings), fast_, random_);
    if (!opened) throw std::runtime_error(to_string(opened.error()));
    return std::move(*opened);
  }
  void empty() {
    if (is_set_up_) PgServer::empty(admin_);
    is_set_up_ = true;
  }
  // The number of COMMITs on the open connections.
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
  // `play(n)` arms the fault at the nth COMMIT and runs the script. Returns the number of COMMITs that could be cut.
  // Stops at the first failure.
  std::uint64_t walk(auto play, std::uint64_t stride, std::uint64_t from = 0) {
    for (std::uint64_t n = from;; n += walk_stride() * stride) {
      const auto fired = proxy_.fired();
      play(n);
      const bool has_fired = proxy_.fired() > fired;
      proxy_.arm(std::deque<ConnectionFault>{});
      if (HasFailure()) ADD_FAILURE() << "the fault was at COMMIT " << n;
      if (!has_fired || HasFailure()) return n;
    }
  }

  PgClient admin_{url()};
  FaultProxy proxy_{PgServer::instance().port()};

 private:
  bool is_set_up_ = false;
  FastClock fast_;
  SystemRandom random_;
};

}  // namespace latchkey
