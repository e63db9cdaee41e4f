// The user's own writes inside the writer's transaction.
#include <sqlite3.h>

#include "store/sqlite/dead_letter_rows.hpp"
#include "store/sqlite/sqlite_tables.hpp"

namespace latchkey {
namespace {

bool is_ours(const char* name) { return name && sqlite3_strnicmp(name, "lk_", 3) == 0; }

// Refuses statements that end the transaction or use Latchkey's tables. The position of the table's name differs by
// action, so both arguments are checked.
int authorize(void*, int action, const char* first, const char* second, const char*, const char*) {
  switch (action) {
    case SQLITE_READ:
    case SQLITE_SELECT:
    case SQLITE_FUNCTION:
    case SQLITE_RECURSIVE:
      return SQLITE_OK;
    case SQLITE_TRANSACTION:
    case SQLITE_SAVEPOINT:
    case SQLITE_ATTACH:
    case SQLITE_DETACH:
    case SQLITE_PRAGMA:
      return SQLITE_DENY;
    default:
      return is_ours(first) || is_ours(second) ? SQLITE_DENY : SQLITE_OK;
  }
}

struct Authorizing {
  explicit Authorizing(sqlite3* handle) : handle(handle) {
    sqlite3_set_authorizer(handle, authorize, nullptr);
    // After a rollback by a statement (OR ROLLBACK), later statements must not commit by themselves.
    sqlite3_commit_hook(
        handle, [](void*) { return 1; }, nullptr);
  }
  ~Authorizing() {
    sqlite3_set_authorizer(handle, nullptr, nullptr);
    sqlite3_commit_hook(handle, nullptr, nullptr);
  }
  sqlite3* handle;
};

}  // namespace

Ending SqliteTables::in_savepoint(const std::function<Ending(sqlite3*)>& effect) {
  will_change();
  database_.execute("SAVEPOINT lk_user");
  Ending ending;
  bool commits = false;
  try {
    const Authorizing guard(database_.handle());
    ending = effect(database_.handle());
    commits = std::holds_alternative<Complete>(ending);
  } catch (const std::exception& error) {
    ending = Fail{.message = error.what(), .code = "EXCEPTION"};
  } catch (...) {
    ending = Fail{.message = "an exception of unknown type", .code = "EXCEPTION"};
  }
  // A failed write or OR ROLLBACK inside the effect has rolled back the whole batch, which must not be committed.
  if (!database_.in_transaction()) throw TablesError(Code::STORE_UNAVAILABLE, "the effect ended the transaction");
  database_.execute(commits ? "RELEASE lk_user" : "ROLLBACK TO lk_user; RELEASE lk_user");
  return ending;
}

std::monostate SqliteTables::change(const std::function<void(Database&)>& write) {
  will_change();
  write(database_);
  return {};
}

}  // namespace latchkey
