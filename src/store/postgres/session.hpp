// Session: a connection for reads and cold things, which block their caller. One at a time uses it; it opens itself
// again after a loss.
#pragma once

#include <mutex>

#include "store/postgres/wire.hpp"

namespace latchkey::pg {

class Session {
 public:
  explicit Session(std::string url) : url_(std::move(url)) {}
  // Throws Failure. A lost connection is tried once more: only for statements that may be repeated.
  Rows run(const Statement& statement);
  // Several statements without parameters, as psql would.
  void execute(const std::string& sql);

 private:
  void open();
  Rows run_once(const Statement& statement);

  const std::string url_;
  std::mutex mutex_;
  std::unique_ptr<PGconn, decltype(&PQfinish)> handle_{nullptr, &PQfinish};
};

}  // namespace latchkey::pg
