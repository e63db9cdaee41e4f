#include "client/embedded_store.hpp"

#include "store/sqlite/full_disk.hpp"
#include "store/sqlite/store_lock.hpp"

namespace latchkey {
namespace {

constexpr Duration kPatience = std::chrono::seconds{10};

}  // namespace

Result<std::optional<std::string>> EmbeddedStore::use(const std::function<void(Store&)>& work) {
  auto lock = StoreLock::acquire(file_, kPatience, clock_);
  if (!lock) {
    if (lock.error().code != Code::STORE_LOCKED) return std::unexpected(explain(lock.error()));
    if (auto address = StoreLock::find_server(file_)) return address;
    return std::unexpected(lock.error());
  }
  auto store = open_even_if_full({.file = file_}, clock_, random_);
  if (!store) return std::unexpected(explain(store.error()));
  lock->record_store();
  work(**store);
  return std::nullopt;  // the store is closed before the lock is released
}

Error EmbeddedStore::explain(Error error) const {
  if (error.code == Code::STORE_FORMAT && error.detail.starts_with("SQLite, "))
    return {Code::STORE_FORMAT, file_ + " is damaged, or is no store (" + error.detail + "): restore a copy"};
  return explain_full_disk(std::move(error), file_);
}

}  // namespace latchkey
