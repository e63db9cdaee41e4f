#include "store/sqlite/sqlite_store.hpp"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/assert.hpp"
#include "base/seeded_bug.hpp"
#include "store/apply.hpp"
#include "store/sqlite/schema.sql.hpp"
#include "store/sqlite/transfer_status.hpp"

namespace latchkey {
namespace {

constexpr std::int64_t kNoDeadline = std::numeric_limits<std::int64_t>::max();

// Inputs and results may be private. SQLite gives its other files the same permissions.
void create_private(const std::string& file) {
  const int made = ::open(file.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (made >= 0) ::close(made);
}

std::unique_ptr<Database> open_writer(const SqliteSettings& settings, int* wal_pages) {
  auto database = std::make_unique<Database>(settings.file, settings.vfs, Access::write);
  database->execute(
      "PRAGMA busy_timeout = 5000; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0;"
      "PRAGMA cache_size = -131072; PRAGMA temp_store = MEMORY");
  sqlite3_wal_hook(
      database->handle(),
      [](void* pages, sqlite3*, const char*, int count) {
        *static_cast<int*>(pages) = count;
        return SQLITE_OK;
      },
      wal_pages);
  return database;
}

void create_or_check(Database& database, bool opens_transferred) {
  Statement exists = database.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'lk_state'");
  if (!exists.step()) {
    exists.reset();
    database.execute("BEGIN IMMEDIATE;" + std::string(sql::schema) + "COMMIT");
    return;
  }
  exists.reset();
  Statement format = database.prepare(find_sql("read_format"));
  const std::int64_t found = format.step() ? format.integer(0) : 0;
  format.reset();
  if (found == kTransferredFormat && opens_transferred) return;
  if (found == kTransferredFormat)
    throw TablesError(Code::STORE_MOVED, describe(find_transfer_status(database).value()));
  if (found != kStoreFormat)
    throw TablesError(Code::STORE_FORMAT, "the file was written by another version of Latchkey");
}

}  // namespace

Result<std::unique_ptr<SqliteStore>> SqliteStore::open(SqliteSettings settings, Clock& clock, Random& random) {
  try {
    Instant mark;
    if (is_log_without_store(settings.file))
      return fail(Code::STORE_FORMAT, settings.file + " is empty, but " + settings.file +
                                          "-wal is not: the file was cut or removed. Put it back from a copy, or move "
                                          "the -wal away to begin a new store");
    if (!settings.vfs) create_private(settings.file);
    {
      int unused = 0;
      const auto database = open_writer(settings, &unused);
      create_or_check(*database, settings.opens_transferred);
      Statement state = database->prepare(find_sql("read_state"));
      LK_ASSERT(state.step());
      mark = from_ms(state.integer(5));
    }
    std::unique_ptr<SqliteStore> store(new SqliteStore(std::move(settings), clock, random, mark));
    store->open_connections();
    store->open_readers();
    if (!store->settings_.stepped) store->thread_ = std::thread([raw = store.get()] { raw->work(); });
    return store;
  } catch (const TablesError& error) {
    return fail(error.code, error.what());
  }
}

SqliteStore::SqliteStore(SqliteSettings settings, Clock& clock, Random& random, Instant mark)
    : settings_(std::move(settings)),
      steady_(clock),
      random_(random),
      clock_(clock, mark),
      watch_(settings_.file),
      busy_since_(kIdle),
      queue_checked_for_(kIdle),
      next_deadline_ms_(kNoDeadline) {}

SqliteStore::~SqliteStore() {
  queue_.close();
  if (thread_.joinable()) thread_.join();
  // An abandoned store has no commands left, and its file must not be opened again.
  Batch rest;
  queue_.take_queued(rest);
  if (!rest.empty() || !unknown_.empty()) apply_batch(rest);
  for (auto& command : unknown_)
    command->error = Error{Code::STORE_UNAVAILABLE, "the store was closed before the commit's result was known: retry"};
  reply_to(unknown_);
  // If the file was removed or replaced, another store may be at its path: it must not be changed, and its log must
  // stay.
  const bool gone = watch_.find_file_fault().has_value();
  if (gone) preserve_log();
  try {
    if (tables_ && !gone) tables_->merge_all(clock_.now());
  } catch (const TablesError& error) {
    // The next opening rebuilds the key window.
    spdlog::warn("sqlite: closing without a merge: {}", error.what());
  }
  close_connections();
}

void SqliteStore::abandon() {
  queue_.close();
  if (thread_.joinable()) thread_.join();
  Batch rest;
  queue_.take_queued(rest);
  unknown_.clear();
  preserve_log();
  close_connections();
}

void SqliteStore::open_connections() {
  writer_ = open_writer(settings_, &wal_pages_);
  tables_ = std::make_unique<SqliteTables>(*writer_, random_, window_, settings_.merge);
  tables_->load();
  checkpointer_ = std::make_unique<Checkpointer>(*writer_, settings_.file, settings_.vfs, settings_.checkpoint_pages,
                                                 settings_.stepped ? Syncing::in_place : Syncing::by_thread);
  watch_.note();
  publish_open_runs();
}

void SqliteStore::publish_open_runs() {
  const auto deadline = tables_ ? tables_->next_deadline() : std::nullopt;
  next_deadline_ms_ = deadline ? to_ms(*deadline) : kNoDeadline;
  if (!tables_) return;
  const std::lock_guard lock(open_runs_mutex_);
  open_runs_ = tables_->count_open();
}

void SqliteStore::open_readers() {
  auto reader = std::make_shared<SqliteReader>(settings_.file, settings_.vfs, window_);
  auto lister = std::make_shared<SqliteReader>(settings_.file, settings_.vfs, window_);
  const std::lock_guard lock(reader_mutex_);
  reader_ = std::move(reader);
  lister_ = std::move(lister);
}

void SqliteStore::close_connections() {
  {
    const std::lock_guard lock(reader_mutex_);
    reader_.reset();
    lister_.reset();
  }
  tables_.reset();
  checkpointer_.reset();
  writer_.reset();
}

void SqliteStore::work() {
  Batch batch;
  while (true) {
    // Without commands, too, the store retries to open its file, because reads need it, and checks that its files are
    // in place.
    if (!queue_.take_within(batch, settings_.refuse_for)) return;
    apply_batch(batch);
    batch.clear();
  }
}

std::size_t SqliteStore::step() {
  Batch batch;
  queue_.take_queued(batch);
  const std::size_t waited = batch.size();
  if (!batch.empty() || !tables_) apply_batch(batch);
  return waited;
}

void SqliteStore::apply_batch(Batch& batch) {
  busy_since_.store(steady_.elapsed().count(), std::memory_order_relaxed);
  if (!tables_) reopen();
  if (refusing_ && tables_ && steady_.elapsed() >= refusing_until_) refusing_.reset();
  if (!refusing_) refuse_if_files_missing();
  if (!batch.empty() && (refusing_ || !try_batch(batch))) apply_without_writes(batch);
  publish_open_runs();
  reply_to(batch);
  if (tables_ && !refusing_ && !batch.empty()) checkpoint_if_due();
  busy_since_.store(kIdle, std::memory_order_relaxed);
}

// Returns false if the batch was rolled back, for the reason in refusing_. The batch of an unknown commit goes to
// unknown_.
bool SqliteStore::try_batch(Batch& batch) {
  const Instant now = clock_.now();
  try {
    tables_->refuse_changes(std::nullopt);
    tables_->begin();
    for (auto& command : batch) command->apply({*tables_, random_, now});
  } catch (const TablesError& error) {
    refuse(error, batch.size());
    if (error.code == Code::STORE_FULL) {
      tables_->rollback();
    } else {
      reopen();
    }
    return false;
  }
  const std::int64_t number = tables_->state().batch + 1;
  try {
    tables_->commit(now);
    if (tables_->changed()) set_failure(std::nullopt);
    return true;
  } catch (const TablesError& error) {
    refuse(error, batch.size());
    // STORE_FULL comes before the commit record is complete, so the commit cannot take effect later.
    if (error.code == Code::STORE_FULL) {
      tables_->rollback();
      return false;
    }
  }
  unknown_ = std::exchange(batch, {});
  unknown_number_ = number;
  reopen();
  return true;
}

// A commit into a removed file succeeds and is lost. The path is not opened again, because it may be another store. If
// the file is put back, the store accepts changes again.
void SqliteStore::refuse_if_files_missing() {
  const auto fault = watch_.find_fault();
  if (fault && !files_missing_) spdlog::error("sqlite: {}; changes are refused until it is put back", *fault);
  if (!fault && files_missing_) spdlog::info("sqlite: {} is in its place again", settings_.file);
  files_missing_ = fault.has_value();
  if (!fault) return;
  refusing_ = Error{Code::STORE_UNAVAILABLE, *fault + "; nothing was changed"};
  refusing_until_ = steady_.elapsed() + settings_.refuse_for;
  set_failure(refusing_);
}

void SqliteStore::refuse(const TablesError& error, std::size_t commands) {
  spdlog::error("sqlite: a batch of {} was not written: {}", commands, error.what());
  refusing_ = Error{error.code, "the store could not be written; nothing was changed"};
  refusing_until_ = steady_.elapsed() + settings_.refuse_for;
  set_failure(refusing_);
}

void SqliteStore::set_failure(std::optional<Error> failure) {
  const std::lock_guard lock(failure_mutex_);
  failure_ = std::move(failure);
}

// Applies each command in a transaction that is rolled back: commands that only read get their reply, commands that
// would change data get the error.
void SqliteStore::apply_without_writes(Batch& batch) {
  if (!tables_) {
    for (auto& command : batch) command->error = refusing_;
    return;
  }
  tables_->refuse_changes(refusing_->code);
  const Instant now = clock_.now();
  for (auto& command : batch) {
    try {
      tables_->begin();
      command->apply({*tables_, random_, now});
    } catch (const TablesError& error) {
      command->error = files_missing_ ? *refusing_ : Error{error.code, refusing_->detail};
    }
    tables_->rollback();
  }
}

// The log must outlive the connections: it may have pages that are not in the file.
void SqliteStore::preserve_log() {
  if (writer_) sqlite3_db_config(writer_->handle(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
}

// Opens the file anew after an I/O error. The batch of an unknown commit gets its reply: the file shows its result.
void SqliteStore::reopen() {
  try {
    preserve_log();
    sync_failed_ |= checkpointer_ && checkpointer_->has_failed();
    close_connections();
    if (const auto fault = watch_.find_file_fault()) throw TablesError(Code::STORE_UNAVAILABLE, *fault);
    open_connections();
    make_log_durable();
    sync_failed_ = false;
    // Only now, because replies must not depend on data that a loss of power could still destroy.
    open_readers();
  } catch (const TablesError& error) {
    spdlog::error("sqlite: cannot reopen {}: {}", settings_.file, error.what());
    preserve_log();
    close_connections();
    refusing_ = Error{Code::STORE_UNAVAILABLE, "the store cannot be opened; nothing was changed"};
    refusing_until_ = steady_.elapsed() + settings_.refuse_for;
    set_failure(refusing_);
    return;
  }
  if (unknown_.empty()) return;
  const bool committed = (tables_->state().batch == unknown_number_ && !LK_SEEDED(lost_commit_taken_as_failure)) ||
                         LK_SEEDED(lost_commit_taken_as_success);
  for (auto& command : unknown_)
    if (!committed) command->error = refusing_;
  reply_to(unknown_);
  unknown_.clear();
}

// Writes the log over itself, byte for byte, and syncs it. Its pages may only be in the page cache: after a failed sync
// the kernel may take them for clean, and the next sync would not write them. The log must not be copied before: a file
// that is newer than its log on the disk is corrupt after a loss of power.
void SqliteStore::rewrite_log() {
  sqlite3_file* log = nullptr;
  sqlite3_int64 size = 0;
  sqlite3_file_control(writer_->handle(), "main", SQLITE_FCNTL_JOURNAL_POINTER, &log);
  if (!log || !log->pMethods) return;
  const auto check = [](int code) {
    if (code != SQLITE_OK) throw TablesError(Code::STORE_UNAVAILABLE, "the log could not be written again");
  };
  check(log->pMethods->xFileSize(log, &size));
  std::vector<char> bytes(64 * 1024);
  for (sqlite3_int64 at = 0; at < size; at += static_cast<sqlite3_int64>(bytes.size())) {
    const int part = static_cast<int>(std::min<sqlite3_int64>(size - at, static_cast<sqlite3_int64>(bytes.size())));
    check(log->pMethods->xRead(log, bytes.data(), part, at));
    check(log->pMethods->xWrite(log, bytes.data(), part, at));
  }
  if (size > 0) check(log->pMethods->xSync(log, SQLITE_SYNC_NORMAL));
}

// Copies the whole log into the file and syncs it, which makes it durable.
void SqliteStore::make_log_durable() {
  if (!LK_SEEDED(log_not_rewritten)) rewrite_log();
  int pages = 0, copied = 0;
  const auto checkpoint = [&](int mode) {
    return sqlite3_wal_checkpoint_v2(writer_->handle(), nullptr, mode, &pages, &copied);
  };
  // Another process may have preserved SQLite's record of copied pages, which is not valid after a failed sync.
  if (sync_failed_ && (checkpoint(SQLITE_CHECKPOINT_NOOP) != SQLITE_OK || copied > 0))
    throw TablesError(Code::STORE_UNAVAILABLE, "a reader uses the index of the old log: close it");
  if (checkpoint(SQLITE_CHECKPOINT_PASSIVE) != SQLITE_OK) writer_->raise("checkpoint");
  if (copied < pages) throw TablesError(Code::STORE_UNAVAILABLE, "a reader prevents the copy of the log");
}

void SqliteStore::reply_to(Batch& batch) {
  for (auto& command : batch) command->finish(command->error ? &*command->error : nullptr);
}

void SqliteStore::checkpoint_if_due() {
  try {
    checkpointer_->after_commit(std::exchange(wal_pages_, 0));
  } catch (const TablesError& error) {
    // The log still has all pages that the file lacks; reopen() copies and syncs it again.
    spdlog::error("sqlite: {}", error.what());
    reopen();
  }
}

}  // namespace latchkey
