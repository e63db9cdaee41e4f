// PostgresStore: stores runs in PostgreSQL; any number of servers share one database.
//
// Every write is a command. Each writer connection takes a batch of waiting commands, reads and locks all their rows in
// one round trip, applies them by the rules that all stores share, and writes the results in another round trip. One
// thread drives all connections.
//
// Correctness rests on the database. The table `keys` decides which run owns a key. The row of a block or state, with
// its fence, decides which worker owns and settles a run. A unique index decides which dead letter is open.
//
// Contention: batches lock rows in one order (see Loader) and wait at most the lock timeout. Commands whose rows stay
// locked are parked and retried by the contended writer. After a unique violation, serialization failure or deadlock
// the batch is rolled back and applied again.
//
// Failure: if the result of a COMMIT is unknown, the store looks for the batch's id before it replies or retries. A
// command that was certainly not committed is rejected with STORE_UNAVAILABLE.
//
// Shutdown: waiting commands get a reply. The store waits for a silent database at most close_max; a commit that is
// still unknown then is reported as unknown. A database that replies is used normally until the store is closed.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <deque>
#include <mutex>
#include <set>
#include <thread>

#include "base/alarm.hpp"
#include "base/clock.hpp"
#include "base/random.hpp"
#include "pg/read_pool.hpp"
#include "store/apply.hpp"
#include "store/postgres/clock_sync.hpp"
#include "store/postgres/coalescing_policy.hpp"
#include "store/postgres/connector.hpp"
#include "store/postgres/deadline_watch.hpp"
#include "store/postgres/notifier.hpp"
#include "store/postgres/pg_tables.hpp"
#include "store/postgres/settings.hpp"
#include "store/store.hpp"

namespace latchkey {

// Properties of a command that are known when it is submitted.
struct PgTraits {
  enum class ReplyMode : std::uint8_t {
    atomic,       // one reply for the whole command
    per_request,  // the command skips contended requests and submits those again itself
    best_effort   // not idempotent: the caller must not retry, so an unknown commit counts as done
  };
  std::size_t bytes = 0;     // approximate size of its payloads
  std::size_t requests = 1;  // requests that it consists of, or jobs that it wants
  ReplyMode reply_mode = ReplyMode::atomic;
  std::string tenant;                     // empty: of no tenant, or of several
  bool reply_early_if_read_only = false;  // if it writes nothing, its reply does not wait for the batch's commit
};

class PgCommand : public PgTraits {
 public:
  virtual ~PgCommand() = default;
  // Adds the rows that the command certainly reads.
  virtual void plan(pg::ReadSet& read_set) = 0;
  virtual void apply(Applying with) = 0;
  // Replies. Called once: after the commit, with an error, or before the commit if the command is read-only.
  virtual void finish(const Error* error) = 0;

  bool is_applied = false;
  Duration submitted{};                     // by the host's steady clock
  std::optional<Duration> contended_since;  // when the command was first parked
  std::optional<std::vector<Uuid>> keys;    // cache: the keys of its plan
};

class PostgresStore final : public Store {
 public:
  // Requires a migrated database: migrate/open_postgres.hpp migrates it first.
  static Result<std::unique_ptr<PostgresStore>> open(PostgresSettings settings, Clock& clock, Random& random);
  // Replies to waiting commands and closes the connections. No read may be in progress: call begin_shutdown() first,
  // which also ends reads.
  ~PostgresStore() override;

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
  bool reads_block() const override { return true; }
  std::optional<Error> find_failure() override;
  void probe(Done<std::monostate> done) override;
  Instant now() override { return clock_.now(); }
  std::uint64_t data_epoch() const override { return data_epoch_; }
  std::optional<Instant> next_deadline() override { return deadlines_.next(); }
  void begin_shutdown() override;

  Result<DeadLetterPage> list_dead_letters(const DeadLetterQuery& query) override;
  Result<std::optional<DeadLetter>> find_dead_letter(const std::optional<std::string>& tenant, Uuid id) override;
  Result<std::vector<DeadLetterMember>> list_members(Uuid dead_letter, std::uint32_t limit,
                                                     MemberPosition after) override;
  Result<std::optional<DeadLetter>> acknowledge(const std::optional<std::string>& tenant, Uuid id,
                                                const std::string& actor) override;
  Result<std::optional<DeadLetterActionReply>> act_on_dead_letter(const DeadLetterActionRequest& request) override;
  Result<std::monostate> add_token(const TokenRecord& token) override;
  Result<std::vector<TokenRecord>> list_tokens() override;
  Result<bool> revoke_token(const std::string& id) override;

 private:
  using Batch = std::vector<std::unique_ptr<PgCommand>>;

  PostgresStore(PostgresSettings settings, Clock& clock, Random& random);

  template <class T, class Plan, class Apply>
  void submit(Done<T> done, Plan plan, Apply apply, PgTraits traits = {});
  // Submits independent requests as one command; `plan(read_set, request)` plans each. Contended requests are submitted
  // again, those with the same `name(request)` together and in order. The other requests do not wait for them; the
  // reply, which has all results, does.
  template <auto one, class Request, class Reply, class Plan, class Name>
  void submit_each(std::vector<Request> requests, Done<std::vector<Reply>> done, Plan plan, Name name,
                   bool reply_early_if_read_only = false);
  template <class T, class Plan, class Apply>
  Result<T> call(Plan plan, Apply apply);
  template <class Read>
  auto read(Read read) -> Result<decltype(read(std::declval<pg::ReadTransaction&>()))>;

  // Throws TablesError if the database does not isolate tenants.
  void check_security();
  void read_marks();
  // Clears the caches after a failover: the new server may lack rows that the last one had.
  void forget_last_server();
  // The contended writer retries parked commands, so that the normal writers never wait for their rows.
  enum class WriterKind : std::uint8_t { normal, contended };
  // State of one batch across retries.
  struct BatchExecution {
    Uuid name;  // the batch's id in latchkey.batches
    WriterKind kind = WriterKind::normal;
    bool is_unknown = false;            // COMMIT was sent and its result is not known
    bool is_committing = false;         // this attempt has sent COMMIT
    Instant named_at;                   // when the last attempt that sent COMMIT inserted `name`
    bool is_too_late = false;           // `name` may have been purged: the commit cannot be resolved any more
    bool has_unique_violation = false;  // an attempt failed because another transaction inserted the same row
    bool skips_locked = false;          // skip locked rows instead of waiting for them
    bool checks_settlements = false;    // check that a run has no settlement before settling it
    std::map<pg::DeadLetterGroup, DeadLetter> inserted_dead_letters;
    std::vector<pg::TenantKey> inserted_keys;
    pg::PendingNotifications notifications;  // to send after the commit
    // The server's backend and the start of its transaction, as text.
    std::optional<std::pair<std::int64_t, std::string>> backend;
    std::optional<Duration> failing_since;
  };
  struct ParkedCommand {
    std::unique_ptr<PgCommand> command;
    Duration since{};
  };
  static constexpr std::size_t kBatchBytes = 16 << 20;
  static constexpr Duration kCoalesceRecheck = std::chrono::milliseconds{2};
  // Bounds the wait for an orphaned backend to exit. A terminated backend exits as soon as it is scheduled.
  static constexpr Duration kBackendExitTimeout = std::chrono::seconds{2};
  static constexpr Duration kRejectEvery = std::chrono::milliseconds{250};
  static constexpr Duration kContendedPause = std::chrono::milliseconds{20};
  // Time limits of one probe of keys; the next probe continues with the remaining keys. A free key takes 20 µs, a
  // contended key a millisecond.
  static constexpr Duration kProbeTimeLimit = std::chrono::milliseconds{50};
  static constexpr Duration kProbeContendedLimit = std::chrono::milliseconds{16},
                            kProbeUnprobedLimit = kProbeTimeLimit - kProbeContendedLimit;
  static constexpr std::size_t kProbesPerTick = 512;
  // Every probe of a dead letter leaves a dead row in its table.
  static constexpr Duration kDeadLetterProbeEvery = std::chrono::milliseconds{200};
  static constexpr Duration kDeferFor = std::chrono::seconds{1};
  // A run counts as contended for this long after the last failed lock.
  static constexpr Duration kContendedFor = std::chrono::seconds{1};
  static constexpr Duration kPruneEvery = std::chrono::milliseconds{100};
  // The contended writer waits for the lock of a contended run at most this often, and otherwise uses SKIP LOCKED.
  static constexpr Duration kLockWaitEvery = std::chrono::milliseconds{500};
  // Must be shorter than the time after which batch ids are purged.
  static constexpr Duration kCommitResolutionTimeout = std::chrono::minutes{30};
  // Bounds all retries once close_max has passed.
  static constexpr Duration kShutdownRetryWindow = std::chrono::seconds{1};
  // After an enqueued key was found to exist, this many batches must find none before keys are assumed to be new again.
  // Reading them costs a tenth of a failed insert.
  static constexpr unsigned kNewKeyStreakMin = 20;
  class Loader;  // pg_load.cpp
  struct ContendedRun {
    Duration until{};   // when the run no longer counts as contended
    Duration waited{};  // when a batch last waited for its lock
  };
  // The position from which a take scans for ready blocks.
  struct ReadyMark {
    std::optional<Instant> from;
    Duration full_scan{};  // when the last full scan began
  };

  void spawn(Task<void> task);
  void start_shutdown();
  // `since`: time since shutdown began.
  void start_shutdown_timer(Duration since);
  // pg_writers.cpp
  Task<void> run_writer();
  Task<void> run_contended_writer();
  Task<Batch> next_batch();
  // The caller holds the mutex.
  bool is_small_backlog() const;
  Batch take_backlog();
  Task<void> reject_during_outage();
  // pg_connect.cpp
  Task<std::unique_ptr<pg::Connection>> connect();
  Task<void> terminate_orphaned_backend(pg::Connection& connection, BatchExecution& execution);
  // pg_batch.cpp
  Task<void> apply_batch(std::unique_ptr<pg::Connection>& connection, Batch batch,
                         WriterKind kind = WriterKind::normal);
  Task<std::optional<pg::Failure>> execute_once(std::unique_ptr<pg::Connection>& connection, Batch& batch,
                                                BatchExecution& execution);
  Task<void> roll_back(std::unique_ptr<pg::Connection>& connection, const pg::Failure& failure,
                       BatchExecution& execution);
  Task<bool> detect_contention(std::unique_ptr<pg::Connection>& connection, BatchExecution& execution);
  void reply(Batch batch);
  Batch reject_expired(Batch batch, const pg::Failure& failure, const BatchExecution& execution, Duration patience);
  Task<void> try_batch(pg::Connection& connection, Batch& batch, BatchExecution& execution);
  Task<bool> resolve_unknown_commit(pg::Connection& connection, BatchExecution& execution);
  Task<void> load(pg::Connection& connection, pg::PgTables& tables, pg::ReadSet read_set, bool first,
                  BatchExecution& execution, Instant& now);
  void park(std::unique_ptr<PgCommand> command);
  Batch next_contended_batch();
  // pg_contention.cpp
  bool needs_contended_key(PgCommand& command) const;
  Task<bool> probe_keys(pg::Connection& connection, std::vector<pg::TenantKey> keys, Duration time_limit);
  Task<void> probe_contended(std::unique_ptr<pg::Connection>& connection);
  Task<bool> probe_contended_dead_letters(pg::Connection& connection,
                                          std::map<pg::DeadLetterGroup, DeadLetter> dead_letters);
  Task<bool> probe_dead_letter_insert(pg::Connection& connection, const DeadLetter& dead_letter);
  std::vector<pg::Seq> exclude_contended_runs(pg::ReadSet& read_set, const BatchExecution& execution);
  void record_lock_results(const pg::PgTables& tables, const std::vector<pg::Seq>& requested);
  void defer_overdue_runs(const pg::PgTables::DeferredRuns& deferred);
  pg::PgTables::DeferredRuns deferred_runs();
  bool is_closed();
  void set_failure(std::optional<Error> failure);

  const PostgresSettings settings_;
  Clock& host_;  // the host's clock, for timeouts and delays
  Random& random_;
  pg::ClockSync clock_;
  pg::ReadPool read_pool_;

  std::mutex mutex_;  // guards the next three members
  std::deque<std::unique_ptr<PgCommand>> backlog_;
  bool is_closed_ = false;
  std::optional<Error> failure_;

  // Used by the store's thread only.
  boost::asio::io_context context_{1};
  pg::SocketWaiters waiters_;
  pg::Connector connector_{settings_, waiters_};
  unsigned tasks_left_ = 0;
  bool is_shutting_down_ = false;
  Limit close_limit_{context_.get_executor()};
  Alarm wake_{context_.get_executor()};  // wakes idle writers
  pg::Counters counters_;
  pg::HeadCache heads_{64 << 20};
  std::map<pg::ReadyFilter, ReadyMark> ready_marks_;
  std::set<std::string> tenants_;         // tenants that the database is known to have
  unsigned new_key_streak_ = 0;           // batches since an enqueued key was found to exist
  bool uses_prepared_statements_ = true;  // false once a pooler was detected
  std::vector<ParkedCommand> parked_;
  pg::ContendedKeys contended_keys_;
  std::map<pg::Seq, ContendedRun> contended_runs_;
  Duration contended_runs_pruned_{};
  // Dead letters that other transactions are inserting, as this store would insert them.
  std::map<pg::DeadLetterGroup, DeadLetter> contended_dead_letters_;
  Duration dead_letters_probed_{};
  // Overdue runs and blocks that sweeps skip until this time, because a row they need is locked.
  std::map<pg::Seq, Duration> deferred_;
  std::map<std::pair<pg::Seq, pg::Seq>, Duration> deferred_blocks_;
  unsigned writers_left_ = 0;
  bool runs_contended_writer_ = true;
  pg::CoalescingPolicy coalescing_{settings_.coalesce_below};
  Limit coalesce_timer_{context_.get_executor()};
  bool coalesce_timer_set_ = false;
  std::optional<Duration> outage_since_;  // the first lost connection since the last commit
  Alarm reject_wake_{context_.get_executor()};
  Alarm contended_wake_{context_.get_executor()};
  pg::DeadlineTracker deadlines_;
  pg::ServerIdentity identity_;
  pg::DeadlineWatch deadline_watch_{connector_, identity_,           clock_,
                                    deadlines_, settings_.reply_max, context_.get_executor()};
  pg::Notifier notifier_{connector_, host_, settings_.reply_max, context_.get_executor()};
  std::atomic<std::uint64_t> data_epoch_{0};
  std::thread thread_;
};

}  // namespace latchkey
