#include "store/postgres/session.hpp"

namespace latchkey::pg {

void Session::open() {
  if (handle_ && PQstatus(handle_.get()) == CONNECTION_OK) return;
  handle_.reset(PQconnectdb(url_.c_str()));
  if (PQstatus(handle_.get()) != CONNECTION_OK) throw Failure("", PQerrorMessage(handle_.get()), true);
}

Rows Session::run_once(const Statement& statement) {
  open();
  const auto types = statement.params.types();
  const auto values = statement.params.values();
  const auto lengths = statement.params.lengths();
  const std::vector<int> formats(types.size(), 1);
  return check(handle_.get(), PQexecParams(handle_.get(), statement.sql.c_str(), static_cast<int>(types.size()),
                                           types.data(), values.data(), lengths.data(), formats.data(), 1));
}

Rows Session::run(const Statement& statement) {
  const std::lock_guard lock(mutex_);
  try {
    return run_once(statement);
  } catch (const Failure& failure) {
    if (!failure.lost) throw;
  }
  return run_once(statement);
}

void Session::execute(const std::string& sql) {
  const std::lock_guard lock(mutex_);
  open();
  check(handle_.get(), PQexec(handle_.get(), sql.c_str()));
}

}  // namespace latchkey::pg
