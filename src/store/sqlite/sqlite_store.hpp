// SqliteStore: the default store, in one SQLite file. Every write is a command; one writer thread takes all that wait,
// applies them in one transaction (synchronous=FULL) and then answers them: load makes batches larger, not slower.
//
// The file belongs to one process at a time: take its lock first (store_lock.hpp). Other connections may read it; they
// must not write it. A user's own tables in it are written by settle_with() alone.
//
// Failure: a batch that cannot be written is undone, memory included, and its commands are answered STORE_FULL or
// STORE_UNAVAILABLE; those that only read are answered as usual. For a second after that nothing is changed. A commit
// whose fate is unknown (a failed fsync) is settled by opening the file again: its batch number is there or it is not.
// A file that was removed, replaced or cut is noticed before the next commit, at the latest within a second, and
// nothing is changed until it is back in its place.
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
  bool stepped = false;                           // no writer thread: commands wait for step(); for the simulation
  MergeSettings merge;                            // of the key window
  int checkpoint_pages = 2'000;                   // of the WAL, before they are moved into the file
  Duration refuse_for = std::chrono::seconds{1};  // after a failed write
  bool opens_moved = false;                       // also one that was moved elsewhere: for who moves it, to read
};

// A piece of work on the writer's connection, inside the batch's transaction.
class SqliteCommand {
 public:
  virtual ~SqliteCommand() = default;
  virtual void apply(Applying with) = 0;
  // Once, after the commit, or with the error that befell it.
  virtual void finish(const Error* error) = 0;
  // Before it is applied: answers it without a write, where that can be done. It is over then.
  virtual bool try_reply_without_write() { return false; }
  std::optional<Error> error;
};

class SqliteStore final : public Store {
 public:
  static Result<std::unique_ptr<SqliteStore>> open(SqliteSettings settings, Clock& clock, Random& random);
  // Answers what waits, merges, checkpoints, closes.
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
  Result<std::optional<LetterMoved>> move_dead_letter(const LetterMove& wish) override;
  Result<std::monostate> add_token(const TokenRecord& token) override;
  Result<std::vector<TokenRecord>> list_tokens() override;
  Result<bool> revoke_token(const std::string& id) override;

  Result<ChangeReply> write_records(const CatalogChange& change) override;
  Result<std::vector<CatalogRecord>> list_records(const RecordQuery& query) override;
  Result<std::optional<CatalogRecord>> find_record(const RecordName& id) override;
  Result<std::uint64_t> catalog_version() override { return catalog_version_.load(); }
  void add_audit(std::vector<AuditEntry> entries, Done<std::monostate> done) override;
  Result<AuditPage> list_audit(const AuditQuery& query) override;

  // The `transactional` promise: if the fence is good, calls `effect` on the writer's connection, in a savepoint of the
  // transaction in which its ending is settled. If it throws, only its own writes are undone and the try fails.
  using Effecting = std::function<Ending(sqlite3*)>;
  void settle_with(SettleRequest request, Effecting effect, Done<SettleReply> done);

  // Stepped only: applies what waits in one transaction. Gives how many commands were answered.
  std::size_t step();
  // Forgets everything without a word, as a killed process would: nothing is merged, checkpointed or answered.
  void abandon();

 private:
  using Batch = std::vector<std::unique_ptr<SqliteCommand>>;
  static constexpr std::int64_t kIdle = -1;

  SqliteStore(SqliteSettings settings, Clock& clock, Random& random, Instant mark);

  template <class T, class Apply>
  void submit(Done<T> done, Apply apply);
  // Submits and waits for the answer.
  template <class T, class Apply>
  Result<T> call(Apply apply);
  template <class Read>
  auto read(std::shared_ptr<SqliteReader> SqliteStore::* which, Read read)
      -> Result<decltype(read(std::declval<SqliteReader&>()))>;

  void open_connections();
  void open_readers();
  void close_connections();
  void work();
  void apply_batch(Batch& batch);
  bool try_batch(Batch& batch);
  void apply_refusing(Batch& batch);
  void refuse(const TablesError& error, std::size_t commands);
  void refuse_if_gone();
  void tell_failure(std::optional<Error> failure);
  // What a claim is told without a write: the outcome of a run that is done.
  std::optional<ClaimReply> find_replay(const ClaimRequest& request);
  // The writer cannot write, or has been at one batch for long.
  bool is_writer_stalled();
  // Once per batch: looks for the outcomes of claims that came before anybody knew that it takes long.
  void reply_to_queued_replays();
  struct Claiming;
  void keep_log();
  // What other threads ask of the ready_index.
  void tell_agenda();
  void reopen();
  void answer(Batch& batch);
  void rewrite_log();
  void make_log_durable();
  void checkpoint_if_due();

  const SqliteSettings settings_;
  Clock& steady_;
  Random& random_;
  StoreClock clock_;
  FileWatch watch_;
  bool told_gone_ = false;
  KeyWindow window_;
  std::unique_ptr<Database> writer_;
  std::unique_ptr<SqliteTables> tables_;
  std::unique_ptr<Checkpointer> checkpointer_;
  std::mutex reader_mutex_;               // guards the pointer, not the reads
  std::shared_ptr<SqliteReader> reader_;  // for look-ups
  std::shared_ptr<SqliteReader> lister_;  // for lists, which may take long
  CommandQueue<std::unique_ptr<SqliteCommand>> queue_;
  Batch unknown_;  // whose commit may or may not be in the file
  std::int64_t unknown_number_ = 0;
  std::optional<Error> refusing_;
  Duration refusing_until_{};
  std::mutex failure_mutex_;
  std::optional<Error> failure_;          // of the latest change, for other threads
  std::atomic<std::int64_t> busy_since_;  // when the batch at hand was begun; kIdle: there is none
  std::atomic<std::int64_t> looked_;      // busy_since_ of the batch behind which reply_to_queued_replays() has looked
  bool sync_failed_ = false;              // of a checkpoint, not mended yet
  int wal_pages_ = 0;                     // in the log, as of the last commit
  std::atomic<std::int64_t> next_deadline_ms_;
  std::atomic<std::uint64_t> catalog_version_{0};  // as of the latest batch
  std::mutex census_mutex_;
  StoreStats open_runs_;  // as of the latest batch
  std::thread thread_;
};

}  // namespace latchkey
