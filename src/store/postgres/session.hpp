// Sessions: a few connections for reads and cold things, which block their caller. Each opens itself again after a
// loss.
//
// Every statement is a transaction of its own and runs in a role that row-level security holds for, whoever the URL
// connects as: a tenant's reads as that tenant, what looks over tenants as the engine.
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>

#include "store/postgres/wire.hpp"

namespace latchkey::pg {

class Sessions {
 public:
  Sessions(std::string url, std::size_t most) : url_(std::move(url)), most_(most) {}
  // Throws Failure. A lost connection is tried once more: only for statements that may be repeated. Without a tenant:
  // as the engine.
  Rows run(const std::optional<std::string>& tenant, const Statement& statement);
  // As whoever the URL connects as.
  Rows run_plainly(const Statement& statement);

 private:
  using Handle = std::unique_ptr<PGconn, decltype(&PQfinish)>;

  Handle borrow();
  void give_back(Handle handle);
  Rows run_all(const std::vector<Statement>& statements);
  Rows run_once(const std::vector<Statement>& statements);

  const std::string url_;
  const std::size_t most_;
  std::mutex mutex_;
  std::condition_variable returned_;
  std::vector<Handle> idle_;
  std::size_t lent_ = 0;
};

}  // namespace latchkey::pg
