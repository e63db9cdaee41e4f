#include "transfer/source.hpp"

#include <algorithm>
#include <filesystem>

#include "base/assert.hpp"
#include "migrate/migration_error.hpp"

namespace latchkey::transfer {

using migrate::MigrationError;

namespace {

// A command without a server has the lock for the time of a transaction.
constexpr Duration kPatience = std::chrono::seconds{10};

template <class Work>
auto guarded(Work work) {
  try {
    return work();
  } catch (const TablesError& error) {
    throw MigrationError(error.code, error.what());
  }
}

// To be called before the lock is acquired, which would create the file.
void require_store(const std::string& file) {
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) throw MigrationError(Code::NOT_FOUND, "there is no store at " + file);
  bool is_store = false;
  try {
    Database database(file, nullptr, Access::read);
    database.execute("PRAGMA busy_timeout = 5000");
    Statement query = database.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'lk_state'");
    is_store = query.step();
  } catch (const TablesError& error) {
    throw MigrationError(Code::STORE_FORMAT, file + " cannot be read as a store: " + error.what());
  }
  if (!is_store) throw MigrationError(Code::STORE_FORMAT, file + " is no store of Latchkey's");
}

}  // namespace

Source::Source(std::string file, Clock& clock, Random& random) : file_(std::move(file)) {
  // Before require_store(): a server writes to the file, so a read of it may wait.
  if (const auto address = StoreLock::find_server(file_))
    throw MigrationError(Code::STORE_LOCKED, "the server at " + *address + " owns " + file_ + ": stop it first");
  require_store(file_);
  auto lock = StoreLock::acquire(file_, kPatience, clock);
  if (!lock) throw MigrationError(lock.error().code, lock.error().detail + "; nothing was moved");
  lock_.emplace(std::move(*lock));
  auto store = SqliteStore::open({.file = file_, .opens_transferred = true}, clock, random);
  if (!store) throw MigrationError(store.error().code, store.error().detail);
  store_ = std::move(*store);
  lock_->record_store();
  guarded([this] { read_file(); });
}

Source::~Source() { store_.reset(); }

void Source::read_file() {
  Database database(file_, nullptr, Access::read);
  status_ = find_transfer_status(database);
  Statement state = database.prepare(find_sql("read_state"));
  LK_ASSERT(state.step());
  marks_ = {
      .counter = state.integer(0), .fence = state.integer(1), .clock_ms = state.integer(5), .purged = state.integer(6)};
  state.reset();
  Statement tables = database.prepare(find_sql("list_own_tables"));
  while (tables.step()) own_tables_.emplace_back(tables.bytes(0));
}

void Source::walk(StoreVisitor& into) {
  transfer::walk(*store_, into);
  guarded([&] {
    Database database(file_, nullptr, Access::read);
    Statement waits = database.prepare(find_sql("list_waits"));
    while (waits.step()) into.add_wait({waits.integer(0), waits.integer(1), read_uuid(waits.bytes(2))});
  });
}

std::vector<TokenRecord> Source::list_tokens() {
  auto tokens = store_->list_tokens();
  if (!tokens) throw MigrationError(tokens.error().code, tokens.error().detail);
  return std::move(*tokens);
}

void Source::write_status(const TransferStatus& status) {
  store_.reset();
  guarded([&] { write_transfer_status(file_, status); });
}

void Source::erase_status() {
  store_.reset();
  guarded([&] { erase_transfer_status(file_); });
}

}  // namespace latchkey::transfer
