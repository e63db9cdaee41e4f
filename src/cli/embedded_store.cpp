#include "cli/embedded_store.hpp"

#include "store/sqlite/sqlite_store.hpp"
#include "store/sqlite/store_lock.hpp"

namespace latchkey {
namespace {

constexpr Duration kPatience = std::chrono::seconds{10};

}  // namespace

Result<std::optional<std::string>> EmbeddedStore::use(const std::function<void(Store&)>& work) {
  const auto lock = StoreLock::acquire(file_, kPatience, clock_);
  if (!lock) {
    if (lock.error().code != Code::STORE_LOCKED) return std::unexpected(lock.error());
    if (auto address = StoreLock::find_server(file_)) return address;
    return std::unexpected(lock.error());
  }
  const auto store = SqliteStore::open({.file = file_}, clock_, random_);
  if (!store) return std::unexpected(store.error());
  work(**store);
  return std::nullopt;  // the store is closed before the lock is let go
}

}  // namespace latchkey
