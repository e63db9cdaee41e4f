#include "store/postgres/server_identity.hpp"

#include <spdlog/spdlog.h>

#include "store/postgres/statements.hpp"

namespace latchkey::pg {
namespace {

// More than any server can have drawn that its successor does not know of: a thousand per statement or new run, for a
// day. A 63-bit sequence has room for tens of thousands of such jumps.
constexpr std::int64_t kFencesLost = 100'000'000'000, kCountersLost = 100'000'000'000;

}  // namespace

Task<void> ServerIdentity::check(Connection& connection, Duration reply_max) {
  connection.add(sql().set_role_engine);
  connection.add(sql().compare_identity);
  const auto found = co_await connection.run(reply_max);
  const std::string here(found.back().empty() ? "" : found.back().bytes(0, 0));
  if (!found.back().empty() && found.back().boolean(0, 1)) co_return observe(here);
  connection.add(sql().begin);
  connection.add(sql().set_role_engine_with_lock_timeout);
  connection.add(sql().change_identity);
  const auto changed = co_await connection.run(reply_max);
  if (!changed.back().empty()) {
    spdlog::warn("postgres: failover detected (timeline {}): leases expired, fence sequence advanced",
                 changed.back().bytes(0, 0));
    const Params now = Params().add(to_ms(events_.now()));
    connection.add({sql().jump_fences, Params().add(kFencesLost)});
    connection.add({sql().jump_counters, Params().add(kCountersLost)});
    connection.add({sql().end_block_leases, now});
    connection.add({sql().end_state_leases, now});
    events_.on_leases_ended();
  }
  connection.add(sql().commit);
  co_await connection.run(reply_max);
  // Only after the commit: a writer behind a pooler relies on the identity for sequences that have advanced.
  if (!here.empty()) observe(here);
}

void ServerIdentity::observe(std::string_view identity) {
  if (identity_ == identity) return;
  const bool is_first = identity_.empty();
  identity_ = identity;
  if (!is_first) events_.on_other_server();
}

}  // namespace latchkey::pg
