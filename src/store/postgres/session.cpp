#include "store/postgres/session.hpp"

#include "store/postgres/hosts.hpp"

namespace latchkey::pg {

Sessions::Handle Sessions::borrow() {
  std::unique_lock lock(mutex_);
  returned_.wait(lock, [&] { return lent_ < most_; });
  lent_ += 1;
  Handle handle{nullptr, &PQfinish};
  if (idle_.empty()) return handle;
  handle = std::move(idle_.back());
  idle_.pop_back();
  return handle;
}

void Sessions::give_back(Handle handle) {
  {
    const std::lock_guard lock(mutex_);
    lent_ -= 1;
    if (handle && PQstatus(handle.get()) == CONNECTION_OK) idle_.push_back(std::move(handle));
  }
  returned_.notify_one();
}

// All of them are one transaction, which ends with the sync: nothing stays set for whoever has the connection next.
Rows Sessions::run_once(const std::vector<Statement>& statements) {
  struct Borrowed {
    Sessions& sessions;
    Handle handle = sessions.borrow();
    ~Borrowed() { sessions.give_back(std::move(handle)); }
  } borrowed{*this};
  Handle& handle = borrowed.handle;
  if (!handle) {
    for (const HostUrl& host : split_hosts(url_)) {
      handle.reset(PQconnectdb(host.conninfo.c_str()));
      if (PQstatus(handle.get()) == CONNECTION_OK) break;
    }
    if (PQstatus(handle.get()) != CONNECTION_OK || PQenterPipelineMode(handle.get()) != 1)
      throw Failure("", PQerrorMessage(handle.get()), true);
  }
  const auto require = [&](int done) {
    if (done != 1) throw Failure("", PQerrorMessage(handle.get()), true);
  };
  for (const Statement& statement : statements) {
    const auto types = statement.params.types();
    const auto values = statement.params.values();
    const auto lengths = statement.params.lengths();
    const std::vector<int> formats(types.size(), 1);
    require(PQsendQueryParams(handle.get(), statement.sql.c_str(), static_cast<int>(types.size()), types.data(),
                              values.data(), lengths.data(), formats.data(), 1));
  }
  require(PQpipelineSync(handle.get()));
  std::optional<Rows> rows;
  std::optional<Failure> failure;
  for (std::size_t i = 0; i <= statements.size(); ++i) {
    PGresult* result = PQgetResult(handle.get());
    if (!result) throw Failure("", PQerrorMessage(handle.get()), true);
    if (PQresultStatus(result) == PGRES_PIPELINE_ABORTED) {
      PQclear(result);
    } else {
      try {
        Rows found = check(handle.get(), result);
        if (i + 1 == statements.size()) rows.emplace(std::move(found));
      } catch (const Failure& found) {
        if (!failure) failure.emplace(found);
        if (found.lost) throw;
      }
    }
    if (i < statements.size()) PQgetResult(handle.get());  // the null behind each
  }
  if (failure) throw *failure;
  return std::move(*rows);
}

Rows Sessions::run_all(const std::vector<Statement>& statements) {
  try {
    return run_once(statements);
  } catch (const Failure& failure) {
    if (!failure.lost) throw;
  }
  // The others may be as dead: a restarted server has closed them all.
  {
    const std::lock_guard lock(mutex_);
    idle_.clear();
  }
  return run_once(statements);
}

Rows Sessions::run(const std::optional<std::string>& tenant, const Statement& statement) {
  // Plans must not depend on what the tables were like when they were last analysed, as in the lanes.
  // No person is spoken for, whatever a pooled connection was left with.
  return run_all({{"SELECT set_config('role', $1, true), set_config('app.current_tenant', $2, true), "
                   "set_config('app.current_actor', '', true), "
                   "set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true), "
                   "set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true), "
                   "set_config('jit', 'off', true)",
                   Params()
                       .add(std::string_view(tenant ? "latchkey_tenant" : "latchkey_engine"))
                       .add(std::string_view(tenant ? *tenant : ""))},
                  statement});
}

Rows Sessions::run_plainly(const Statement& statement) { return run_all({statement}); }

}  // namespace latchkey::pg
