// PostgresStore: runs in PostgreSQL, shared by any number of hosts. Every write is a command; a few connections each
// take what waits, read and lock the rows of all of it in one round trip, apply it by the same rules as the embedded
// stores, and write it in another. One thread drives them all.
//
// What the database judges: `keys` who has a key, a run's row and its fence who owns and settles it, a unique index
// which dead letter is open. Two batches that meet wait for each other's rows, in one order; what still collides is
// undone and applied again.
//
// Failure: a batch whose commit is unknown is applied again, command by command guarded by claim ids, fences and
// states, until the database says what is so. What was certainly not kept is answered STORE_UNAVAILABLE.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <mutex>
#include <thread>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "store/apply.hpp"
#include "store/postgres/connection.hpp"
#include "store/postgres/database_clock.hpp"
#include "store/postgres/pg_tables.hpp"
#include "store/postgres/session.hpp"
#include "store/store.hpp"
#include "store/store_clock.hpp"

namespace latchkey {

struct PostgresSettings {
  std::string url;
  unsigned lanes = 4;                            // connections that write
  std::size_t batch = 256;                       // commands in one transaction, at most
  Clock* clock = nullptr;                        // instead of the database's, for tests
  Duration patience = std::chrono::seconds{10};  // with a database that cannot be reached, before a command is refused
};

class PgCommand {
 public:
  virtual ~PgCommand() = default;
  // What it is certain to read.
  virtual void plan(pg::Needs& needs) = 0;
  virtual void apply(Applying with) = 0;
  // Once, after the commit, or with the error that befell it.
  virtual void finish(const Error* error) = 0;
  bool is_applied = false;
};

class PostgresStore final : public Store, private Records {
 public:
  // Sets an empty database up.
  static Result<std::unique_ptr<PostgresStore>> open(PostgresSettings settings, Clock& clock, Random& random);
  // Answers what waits, closes.
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
  Result<Census> census() override;
  std::optional<Error> find_failure() override;
  Instant now() override { return clock_->now(); }
  std::optional<Instant> next_deadline() override;
  Records& records() override { return *this; }

 private:
  using Batch = std::vector<std::unique_ptr<PgCommand>>;
  static constexpr Duration kMarkAhead = std::chrono::seconds{1};

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
  void submit(Done<T> done, Plan plan, Apply apply);
  template <class T, class Plan, class Apply>
  Result<T> call(Plan plan, Apply apply);
  template <class Read>
  auto read(Read read) -> Result<decltype(read(std::declval<pg::Session&>()))>;

  void set_up();
  // pg_lanes.cpp
  Task<void> work(std::size_t lane);
  Task<Batch> next_batch();
  Task<void> apply_batch(std::unique_ptr<pg::Connection>& connection, Batch& batch);
  Task<void> try_batch(pg::Connection& connection, Batch& batch, bool& committing);
  Task<void> load(pg::Connection& connection, pg::PgTables& tables, pg::Needs needs, bool first, Instant& now);
  void answer(Batch& batch, const Error* error);
  void tell_failure(std::optional<Error> failure);

  const PostgresSettings settings_;
  Clock& steady_;
  Random& random_;
  pg::DatabaseClock database_clock_;
  std::optional<StoreClock> clock_;  // set once its mark was read
  pg::Session session_;

  std::mutex mutex_;  // of what follows
  std::deque<std::unique_ptr<PgCommand>> waiting_;
  bool closing_ = false;
  std::optional<Error> failure_;

  // Of the thread alone.
  boost::asio::io_context context_{1};
  // Never expires: it is cancelled to wake the lanes that wait for it.
  boost::asio::steady_timer wake_{context_, boost::asio::steady_timer::time_point::max()};
  pg::Counters counters_;
  pg::Seq purged_to_ = 0;
  std::int64_t clock_mark_ms_ = 0;  // no time beyond it was used
  std::atomic<std::int64_t> next_deadline_ms_;
  std::thread thread_;
};

}  // namespace latchkey
