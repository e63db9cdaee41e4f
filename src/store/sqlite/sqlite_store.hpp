// SqliteStore: the default store, in one SQLite file. Every write is a command. One writer thread takes all queued
// commands, applies them in one transaction (synchronous=FULL) and then replies: load makes batches larger, not slower.
//
// One process at a time owns the file: acquire its lock first (store_lock.hpp). Other connections may read the file and
// must not write it. Only settle_with() writes the user's own tables in it.
//
// Failure: a batch that cannot be written is rolled back, including the memory. Its commands fail with STORE_FULL or
// STORE_UNAVAILABLE; commands that only read get their reply. For a second after that, the store refuses changes. After
// an unknown commit (a failed fsync) the store opens the file again: the batch number in it shows whether the commit
// took effect. If the file was removed, replaced or cut, the store notices it before the next commit, at the latest
// within a second, and refuses changes until the file is back.
#pragma once

#include <atomic>
#include <memory>
#include <thread>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "store/apply.hpp"
#include "store/command_queue.hpp"
#include "store/sqlite/checkpointer.hpp"
#include "store/sqlite/file_watch.hpp"
#include "store/sqlite/sqlite_reader.hpp"
#include "store/sqlite/sqlite_tables.hpp"
#include "store/store.hpp"
#include "store/store_clock.hpp"

namespace latchkey {

struct SqliteSettings {
  std::string file;
  const char* vfs = nullptr;                      // another SQLite VFS, for fault tests
  bool stepped = false;                           // no writer thread: step() applies commands; for the simulation
  MergeSettings merge;                            // of the key window
  int checkpoint_pages = 2'000;                   // a checkpoint starts when the WAL has this many pages
  Duration refuse_for = std::chrono::seconds{1};  // how long changes are refused after a failed write
  bool opens_transferred = false;                 // opens a file with a transfer status, too; for a transfer
};

// A command: work on the writer's connection, inside the transaction of a batch.
class SqliteCommand {
 public:
  virtual ~SqliteCommand() = default;
  virtual void apply(Applying with) = 0;
  // Called once: after the commit, or with the error.
  virtual void finish(const Error* error) = 0;
  // Called before apply(): replies without a write if possible. Returns true if the command is finished.
  virtual bool try_reply_without_write() { return false; }
  std::optional<Error> error;
};

class SqliteStore final : public Store {
 public:
  static Result<std::unique_ptr<SqliteStore>> open(SqliteSettings settings, Clock& clock, Random& random);
  // Executes the queued commands, merges, checkpoints and closes.
  ~SqliteStore() override;

  void claim(ClaimRequest request, Done<ClaimReply> done) override;
  void extend(std::vector<ExtendRequest> requests, Done<std::vector<ExtendReply>> done) override;
  void settle(std::vector<SettleRequest> requests, Done<std::vector<SettleReply>> done) override;
  void enqueue(std::vector<EnqueueRequest> requests, Done<std::vector<EnqueueReply>> done) override;
  void take(TakeRequest request, Done<std::vector<Taken>> done) override;
  void move(MoveRequest request, Done<MoveReply> done) override;
  void sweep(std::uint32_t limit, Done<Swept> done) override;
  void purge(Retention retention, std::uint32_t limit, Done<Swept> done) override;
  void note_duplicates(std::vector<DuplicateNote> notes, Done<std::monostate> done) override;

  Result<std::optional<Run>> find(const std::optional<std::string>& tenant, RunId id) override;
  Result<std::optional<Run>> find_latest(const KeyName& name) override;
  Result<Page> list(const ListQuery& query) override;
  Result<std::optional<Duplicates>> find_duplicates(RunId id) override;
  Result<StoreStats> stats() override;
  std::optional<Error> find_failure() override;
  void probe(Done<std::monostate> done) override;
  Instant now() override { return clock_.now(); }
  std::optional<Instant> next_deadline() override;

  Result<DeadLetterPage> list_dead_letters(const DeadLetterQuery& query) override;
  Result<std::optional<DeadLetter>> find_dead_letter(const std::optional<std::string>& tenant, Uuid id) override;
  Result<std::vector<DeadLetterMember>> list_members(Uuid dead_letter, std::uint32_t limit,
                                                     MemberPosition after = {}) override;
  Result<std::optional<DeadLetter>> acknowledge(const std::optional<std::string>& tenant, Uuid id,
                                                const std::string& actor) override;
  Result<std::optional<DeadLetterActionReply>> act_on_dead_letter(const DeadLetterActionRequest& request) override;
  Result<std::monostate> add_token(const TokenRecord& token) override;
  Result<std::vector<TokenRecord>> list_tokens() override;
  Result<bool> revoke_token(const std::string& id) override;

  // Implements `transactional` effects: if the fence is current, calls `effect` on the writer's connection, in a
  // savepoint of the transaction that settles the attempt. If it throws, only its own writes are rolled back and the
  // attempt fails.
  using TransactionalEffect = std::function<Ending(sqlite3*)>;
  void settle_with(SettleRequest request, TransactionalEffect effect, Done<SettleReply> done);

  // Stepped only: applies the queued commands in one transaction. Returns the number of commands.
  std::size_t step();
  // Closes like a killed process: it does not merge, checkpoint or reply.
  void abandon();

 private:
  using Batch = std::vector<std::unique_ptr<SqliteCommand>>;
  static constexpr std::int64_t kIdle = -1;

  SqliteStore(SqliteSettings settings, Clock& clock, Random& random, Instant mark);

  template <class T, class Apply>
  void submit(Done<T> done, Apply apply);
  // Submits and waits for the reply.
  template <class T, class Apply>
  Result<T> call(Apply apply);
  template <class Read>
  auto read(std::shared_ptr<SqliteReader> SqliteStore::*which, Read read)
      -> Result<decltype(read(std::declval<SqliteReader&>()))>;

  void open_connections();
  void open_readers();
  void close_connections();
  void work();
  void apply_batch(Batch& batch);
  bool try_batch(Batch& batch);
  void apply_without_writes(Batch& batch);
  void refuse(const TablesError& error, std::size_t commands);
  void refuse_if_files_missing();
  void set_failure(std::optional<Error> failure);
  // The reply to a claim that needs no write: the outcome of a completed run.
  std::optional<ClaimReply> find_replay(const ClaimRequest& request);
  // True if the latest write failed, or if the writer has spent more than kStalledAfter on its batch.
  bool is_writer_stalled();
  // Replies to queued claims of completed runs; once per batch.
  void reply_to_queued_replays();
  struct ClaimCommand;
  void preserve_log();
  // Publishes the next deadline and the counts of open runs for other threads.
  void publish_open_runs();
  void reopen();
  void reply_to(Batch& batch);
  void rewrite_log();
  void make_log_durable();
  void checkpoint_if_due();

  const SqliteSettings settings_;
  Clock& steady_;
  Random& random_;
  StoreClock clock_;
  FileWatch watch_;
  bool files_missing_ = false;
  KeyWindow window_;
  std::unique_ptr<Database> writer_;
  std::unique_ptr<SqliteTables> tables_;
  std::unique_ptr<Checkpointer> checkpointer_;
  std::mutex reader_mutex_;               // guards the pointer, not the reads
  std::shared_ptr<SqliteReader> reader_;  // for look-ups
  std::shared_ptr<SqliteReader> lister_;  // for lists, which may take long
  CommandQueue<std::unique_ptr<SqliteCommand>> queue_;
  Batch unknown_;  // the batch of an unknown commit
  std::int64_t unknown_number_ = 0;
  std::optional<Error> refusing_;
  Duration refusing_until_{};
  std::mutex failure_mutex_;
  std::optional<Error> failure_;                 // of the latest write, for other threads
  std::atomic<std::int64_t> busy_since_;         // the start of the current batch; kIdle: there is none
  std::atomic<std::int64_t> queue_checked_for_;  // busy_since_ of the last batch in reply_to_queued_replays()
  bool sync_failed_ = false;                     // the sync of a checkpoint failed, and the log is not durable yet
  int wal_pages_ = 0;                            // in the log after the last commit
  std::atomic<std::int64_t> next_deadline_ms_;
  std::mutex open_runs_mutex_;
  StoreStats open_runs_;  // as of the latest batch
  std::thread thread_;
};

}  // namespace latchkey
