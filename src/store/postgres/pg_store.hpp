// PostgresStore: runs in PostgreSQL, shared by any number of hosts. Every write is a command; a few connections each
// take what waits, read and lock the rows of all of it in one round trip, apply it by the same rules as the embedded
// stores, and write it in another. One thread drives them all.
//
// What the database judges: `keys` who has a key, a block's row or a run's own with its fence who owns and settles it,
// a unique index which dead letter is open. Two batches that meet wait a moment for each other's rows, in one order;
// what is held for longer goes apart and is asked for again; what still collides is undone and applied again.
//
// Failure: a batch whose commit is unknown is looked for by its name before anything is answered or tried again. What
// was certainly not kept is answered STORE_UNAVAILABLE.
//
// Closing: what waits is answered. A database that says nothing is waited for as long as close_max, whatever it is that
// waits; a commit that is unknown then is answered so. One that answers is asked as ever, until it is closed.
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

// What is known of a command when it comes.
struct PgTraits {
  // How its caller has it.
  enum class ReplyMode : std::uint8_t {
    atomic,
    per_request,  // it leaves out what is held, and sees to that itself
    best_effort   // nothing is told of a commit that stays unknown: asking again would be doing it again
  };
  std::size_t bytes = 0;     // that it brings along, about
  std::size_t requests = 1;  // that it is made of, or asks for
  ReplyMode manner = ReplyMode::atomic;
  std::string tenant;                     // empty: nobody's, or everybody's
  bool reply_early_if_read_only = false;  // where it changes nothing, its answer need not wait for the others' commit
};

class PgCommand : public PgTraits {
 public:
  virtual ~PgCommand() = default;
  // What it is certain to read.
  virtual void plan(pg::ReadSet& needs) = 0;
  virtual void apply(Applying with) = 0;
  // Once, after the commit, or with the error that befell it; before the commit where it is a mere answer.
  virtual void finish(const Error* error) = 0;

  bool is_applied = false;
  Duration submitted{};                   // when, by the host's steady clock
  std::optional<Duration> held_since;     // since when somebody's open transaction has held it up
  std::optional<std::vector<Uuid>> keys;  // that it plans to read, once that was asked
};

class PostgresStore final : public Store, private Records {
 public:
  // On a database that was set up: migrations/open_postgres.hpp does that first.
  static Result<std::unique_ptr<PostgresStore>> open(PostgresSettings settings, Clock& clock, Random& random);
  // Answers what waits, closes. Nobody may be reading: begin_shutdown() ends reads, too.
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
  Records& records() override { return *this; }

 private:
  using Batch = std::vector<std::unique_ptr<PgCommand>>;

  PostgresStore(PostgresSettings settings, Clock& clock, Random& random);
  Result<DeadLetterPage> list_dead_letters(const DeadLetterQuery& query) override;
  Result<std::optional<DeadLetter>> find_dead_letter(const std::optional<std::string>& tenant, Uuid id) override;
  Result<std::vector<DeadLetterMember>> list_members(Uuid dead_letter, std::uint32_t limit, MemberPlace after) override;
  Result<std::optional<DeadLetter>> acknowledge(const std::optional<std::string>& tenant, Uuid id,
                                                const std::string& actor) override;
  Result<std::optional<LetterMoved>> move_dead_letter(const LetterMove& wish) override;
  Result<std::monostate> add_token(const TokenRecord& token) override;
  Result<std::vector<TokenRecord>> list_tokens() override;
  Result<bool> revoke_token(const std::string& id) override;

  template <class T, class Plan, class Apply>
  void submit(Done<T> done, Plan plan, Apply apply, PgTraits traits = {});
  // Many, each on its own: `plan(needs, request)`. What is held is asked for again by itself, all that has the same
  // `name(request)` in its order; the others do not wait for it, the answer does.
  template <auto one, class Request, class Reply, class Plan, class Name>
  void submit_each(std::vector<Request> requests, Done<std::vector<Reply>> done, Plan plan, Name name,
                   bool reply_early_if_read_only = false);
  template <class T, class Plan, class Apply>
  Result<T> call(Plan plan, Apply apply);
  template <class Read>
  auto read(Read read) -> Result<decltype(read(std::declval<pg::ReadTransaction&>()))>;

  // Refuses to serve where tenants are not kept apart.
  void check_security();
  void read_marks();
  // Another server than before has replied: nothing that was cached of the last one holds.
  void forget_last_server();
  // slow: apart from all that nobody's open transaction holds up.
  enum class WriterKind : std::uint8_t { normal, contended };
  // One carrying of a batch to its commit, over all its tries.
  struct BatchExecution {
    Uuid name;
    WriterKind kind = WriterKind::normal;
    bool is_unknown = false;                       // whether it was kept already
    bool is_committing = false;                    // this try has asked for it
    Instant named_at;                              // the name of the last one that did
    bool is_too_late = false;                      // to find out what became of that
    bool collided = false;                         // with somebody who was faster
    bool skips = false;                            // what is locked, instead of waiting for it
    bool checks_settlements = false;               // before it settles
    std::map<pg::LetterName, DeadLetter> letters;  // that it opens
    std::vector<pg::TenantKey> keys;               // that it makes
    pg::PendingNotifications news;                 // if it is kept
    // Who carries it out at the server's end, since when.
    std::optional<std::pair<std::int64_t, std::string>> backend;
    std::optional<Duration> failing_since;
  };
  struct ParkedCommand {
    std::unique_ptr<PgCommand> command;
    Duration since{};
  };
  static constexpr std::size_t kBatchBytes = 16 << 20;
  static constexpr Duration kCoalesceRecheck = std::chrono::milliseconds{2};
  // How long the end of a session that was left behind is waited for: it ends by itself, as soon as it may run.
  static constexpr Duration kBackendExitTimeout = std::chrono::seconds{2};
  static constexpr Duration kRejectEvery = std::chrono::milliseconds{250};
  static constexpr Duration kContendedPause = std::chrono::milliseconds{20};
  // How long a look at keys takes at most: what it does not come to has its turn at the next. Where one is free that
  // takes 20 µs, else a millisecond.
  static constexpr Duration kProbeTimeLimit = std::chrono::milliseconds{50};
  static constexpr Duration kProbeContendedLimit = std::chrono::milliseconds{16},
                            kProbeUnprobedLimit = kProbeTimeLimit - kProbeContendedLimit;
  static constexpr std::size_t kProbesPerTick = 512;
  // How often letters that somebody is making are looked at: each look leaves a dead row.
  static constexpr Duration kDeadLetterProbeEvery = std::chrono::milliseconds{200};
  static constexpr Duration kDeferFor = std::chrono::seconds{1};
  // How long a run is taken to be held, when nobody asks for it meanwhile.
  static constexpr Duration kContendedFor = std::chrono::seconds{1};
  static constexpr Duration kPruneEvery = std::chrono::milliseconds{100};
  // And how often one is waited for instead of being looked at.
  static constexpr Duration kLockWaitEvery = std::chrono::milliseconds{500};
  // How long it is tried to find out what became of a commit: less than the names of batches are kept.
  static constexpr Duration kCommitResolutionTimeout = std::chrono::minutes{30};
  // And how long anything is tried again once close_max is over.
  static constexpr Duration kShutdownRetryWindow = std::chrono::seconds{1};
  // Batches with keys of jobs that met none that was there already, before these are taken to be new again. To look for
  // them costs a tenth of what trying in vain does.
  static constexpr unsigned kNewKeyStreakMin = 20;
  class Loading;  // pg_load.cpp
  struct ContendedRun {
    Duration until{};   // that is believed
    Duration waited{};  // when somebody did last
  };
  // From where on jobs are looked for.
  struct ReadyMark {
    std::optional<Instant> from;
    Duration looked{};  // at all of them
  };

  void spawn(Task<void> task);
  void start_closing();
  // So long after that.
  void start_shutdown_timer(Duration since);
  // pg_lanes.cpp
  Task<void> work();
  Task<void> run_contended_writer();
  Task<Batch> next_batch();
  // Both under the mutex.
  bool is_small_backlog() const;
  Batch take_backlog();
  Task<void> reject_waiting();
  // pg_connect.cpp
  Task<std::unique_ptr<pg::Connection>> connect();
  Task<void> terminate_orphaned_backend(pg::Connection& connection, BatchExecution& execution);
  // pg_batch.cpp
  Task<void> apply_batch(std::unique_ptr<pg::Connection>& connection, Batch batch,
                         WriterKind kind = WriterKind::normal);
  Task<std::optional<pg::Failure>> execute_once(std::unique_ptr<pg::Connection>& connection, Batch& batch,
                                                BatchExecution& execution);
  Task<void> leave_transaction(std::unique_ptr<pg::Connection>& connection, const pg::Failure& failure,
                               BatchExecution& execution);
  Task<bool> detect_contention(std::unique_ptr<pg::Connection>& connection, BatchExecution& execution);
  void answer(Batch batch);
  Batch reject_expired(Batch batch, const pg::Failure& failure, const BatchExecution& execution, Duration patience);
  Task<void> try_batch(pg::Connection& connection, Batch& batch, BatchExecution& execution);
  Task<bool> resolve_unknown_commit(pg::Connection& connection, BatchExecution& execution);
  Task<void> load(pg::Connection& connection, pg::PgTables& tables, pg::ReadSet needs, bool first,
                  BatchExecution& execution, Instant& now);
  void park(std::unique_ptr<PgCommand> command);
  Batch next_contended_batch();
  // pg_held.cpp
  bool is_held(PgCommand& command) const;
  Task<bool> find_held(pg::Connection& connection, std::vector<pg::TenantKey> keys, Duration most);
  Task<void> probe_contended(std::unique_ptr<pg::Connection>& connection);
  Task<bool> probe_contended_dead_letters(pg::Connection& connection, std::map<pg::LetterName, DeadLetter> letters);
  Task<bool> probe_dead_letter_insert(pg::Connection& connection, const DeadLetter& letter);
  std::vector<pg::Seq> exclude_contended_runs(pg::ReadSet& needs, const BatchExecution& execution);
  void record_lock_results(const pg::PgTables& tables, const std::vector<pg::Seq>& wanted);
  void defer_overdue_runs(const pg::PgTables::DeferredRuns& out);
  pg::PgTables::DeferredRuns deferred_runs();
  bool is_closing();
  void tell_failure(std::optional<Error> failure);

  const PostgresSettings settings_;
  Clock& host_;  // for waiting
  Random& random_;
  pg::ClockSync clock_;
  pg::ReadPool read_pool_;

  std::mutex mutex_;  // of what follows
  std::deque<std::unique_ptr<PgCommand>> waiting_;
  bool closing_ = false;
  std::optional<Error> failure_;

  // Of the thread alone.
  boost::asio::io_context context_{1};
  pg::SocketWaiters waiters_;
  pg::Connector connector_{settings_, waiters_};
  unsigned tasks_left_ = 0;
  bool closes_soon_ = false;
  Limit close_limit_{context_.get_executor()};
  Alarm wake_{context_.get_executor()};  // of the lanes
  pg::Counters counters_;
  pg::HeadCache heads_{64 << 20};
  std::map<pg::ReadyName, ReadyMark> ready_marks_;
  std::set<std::string> tenants_;         // that are known to the database
  unsigned new_key_streak_ = 0;           // in keys being new
  bool uses_prepared_statements_ = true;  // in sessions that are ours
  std::vector<ParkedCommand> parked_;
  pg::ContendedKeys contended_keys_;
  std::map<pg::Seq, ContendedRun> contended_runs_;  // by somebody's open transaction
  Duration contended_runs_pruned_{};
  std::map<pg::LetterName, DeadLetter>
      contended_dead_letters_;            // that somebody is opening in such a transaction; as we would
  Duration letters_seen_{};               // when they were looked at
  std::map<pg::Seq, Duration> deferred_;  // runs of which something is held: until when sweeps pass them over
  std::map<std::pair<pg::Seq, pg::Seq>, Duration> deferred_blocks_;
  unsigned writers_left_ = 0;
  bool runs_contended_writer_ = true;
  pg::CoalescingPolicy coalescing_{settings_.coalesce_below};
  Limit coalesce_timer_{context_.get_executor()};
  bool coalesce_timer_set_ = false;
  std::optional<Duration> outage_since_;  // since when connections have been lost, and nothing was committed
  Alarm refuse_{context_.get_executor()};
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
