// The verbs of the store: each is a command for the writer, or a read on a reader's connection.
#include <sqlite3.h>

#include <future>

#include "base/assert.hpp"
#include "store/apply.hpp"
#include "store/listing.hpp"
#include "store/sqlite/sqlite_store.hpp"
#include "store/sqlite/token_rows.hpp"

namespace latchkey {
namespace {

// Longer than a batch takes on a healthy disk.
constexpr Duration kStalledAfter = std::chrono::milliseconds{20};

template <class T, class Apply>
class TypedCommand final : public SqliteCommand {
 public:
  TypedCommand(Done<T> done, Apply apply) : done_(std::move(done)), apply_(std::move(apply)) {}
  void apply(Applying with) override { reply_.emplace(apply_(with)); }
  void finish(const Error* failed) override {
    if (failed) return done_(std::unexpected(*failed));
    LK_ASSERT(reply_);
    done_(std::move(*reply_));
  }
  bool try_reply_without_write() override {
    if constexpr (requires { apply_.find_early_reply(); }) {
      auto reply = apply_.find_early_reply();
      if (reply) done_(*std::move(reply));
      return reply.has_value();
    }
    return false;
  }

 private:
  Done<T> done_;
  Apply apply_;
  std::optional<T> reply_;
};

template <auto one, class Request>
auto each(std::vector<Request> requests) {
  return [requests = std::move(requests)](Applying with) {
    std::vector<decltype(one(with, requests.front()))> replies;
    replies.reserve(requests.size());
    for (const Request& request : requests) replies.push_back(one(with, request));
    return replies;
  };
}

}  // namespace

template <class T, class Apply>
void SqliteStore::submit(Done<T> done, Apply apply) {
  std::unique_ptr<SqliteCommand> command = std::make_unique<TypedCommand<T, Apply>>(std::move(done), std::move(apply));
  if (queue_.push(command)) return;
  const Error closed{Code::SHUTTING_DOWN, "the store is closed"};
  command->finish(&closed);
}

template <class T, class Apply>
Result<T> SqliteStore::call(Apply apply) {
  auto promise = std::make_shared<std::promise<Result<T>>>();
  auto answer = promise->get_future();
  submit<T>([promise](Result<T> reply) { promise->set_value(std::move(reply)); }, std::move(apply));
  if (settings_.stepped) {
    step();
    if (answer.wait_for(Duration{0}) != std::future_status::ready)
      return fail(Code::STORE_UNAVAILABLE, "the commit's result is not known yet: retry");
  }
  return answer.get();
}

template <class Read>
auto SqliteStore::read(std::shared_ptr<SqliteReader> SqliteStore::*which, Read read)
    -> Result<decltype(read(std::declval<SqliteReader&>()))> {
  std::shared_ptr<SqliteReader> reader;
  {
    const std::lock_guard lock(reader_mutex_);
    reader = this->*which;
  }
  if (!reader) return fail(Code::STORE_UNAVAILABLE, "the store cannot be opened");
  try {
    return read(*reader);
  } catch (const TablesError& error) {
    return fail(error.code, error.what());
  }
}

struct SqliteStore::ClaimCommand {
  SqliteStore* store;
  ClaimRequest request;

  ClaimReply operator()(Applying with) const { return apply_claim(with, request); }
  std::optional<ClaimReply> find_early_reply() const { return store->find_replay(request); }
};

bool SqliteStore::is_writer_stalled() {
  const std::int64_t since = busy_since_.load(std::memory_order_relaxed);
  return (since != kIdle && steady_.elapsed() - Duration{since} >= kStalledAfter) || find_failure();
}

// A completed run may be replayed without a write until its window ends (see engine/outcome_cache.hpp).
std::optional<ClaimReply> SqliteStore::find_replay(const ClaimRequest& request) {
  if (request.key.empty() || request.guard == Guard::none || !request.key_before.empty()) return std::nullopt;
  const auto found = find_latest({request.tenant, request.function, request.key, request.key_hash});
  if (!found || !*found || !(*found)->in_window(clock_.now())) return std::nullopt;
  ClaimDecision decision = decide_claim(*found, request, static_cast<Fence>(0), clock_.now());
  auto* refuse = std::get_if<Refuse>(&decision);
  if (!refuse || refuse->next) return std::nullopt;
  return std::move(refuse->reply);
}

void SqliteStore::reply_to_queued_replays() {
  const std::int64_t since = busy_since_.load(std::memory_order_relaxed);
  if (since == kIdle || queue_checked_for_.exchange(since, std::memory_order_relaxed) == since) return;
  Batch waiting;
  queue_.take_queued(waiting);
  std::erase_if(waiting, [](const auto& command) { return command->try_reply_without_write(); });
  queue_.give_back(std::move(waiting));
}

// Reads the run before the write only if the writer is stalled: a read for every new key would cost more than it saves.
// The first claim that finds the writer stalled also replies to queued repeats.
void SqliteStore::claim(ClaimRequest request, Done<ClaimReply> done) {
  if (is_writer_stalled()) {
    reply_to_queued_replays();
    if (auto replay = find_replay(request)) return done(*std::move(replay));
  }
  submit(std::move(done), ClaimCommand{this, std::move(request)});
}
void SqliteStore::extend(std::vector<ExtendRequest> requests, Done<std::vector<ExtendReply>> done) {
  submit(std::move(done), each<apply_extend>(std::move(requests)));
}
void SqliteStore::settle(std::vector<SettleRequest> requests, Done<std::vector<SettleReply>> done) {
  submit(std::move(done), each<apply_settle>(std::move(requests)));
}
void SqliteStore::enqueue(std::vector<EnqueueRequest> requests, Done<std::vector<EnqueueReply>> done) {
  submit(std::move(done), each<apply_enqueue>(std::move(requests)));
}
void SqliteStore::take(TakeRequest request, Done<std::vector<Taken>> done) {
  submit(std::move(done), [request = std::move(request)](Applying with) { return apply_take(with, request); });
}
void SqliteStore::move(MoveRequest request, Done<MoveReply> done) {
  submit(std::move(done), [request = std::move(request)](Applying with) { return apply_move(with, request); });
}
void SqliteStore::sweep(std::uint32_t limit, Done<Swept> done) {
  submit(std::move(done), [limit](Applying with) { return apply_sweep(with, limit); });
}
void SqliteStore::purge(Retention retention, std::uint32_t limit, Done<Swept> done) {
  submit(std::move(done), [retention, limit](Applying with) { return apply_purge(with, retention, limit); });
}
void SqliteStore::note_duplicates(std::vector<DuplicateNote> notes, Done<std::monostate> done) {
  submit(std::move(done), [notes = std::move(notes)](Applying with) {
    for (const DuplicateNote& note : notes) with.tables.add_duplicates(note);
    return std::monostate{};
  });
}

Result<std::optional<Run>> SqliteStore::find(const std::optional<std::string>& tenant, RunId id) {
  return read(&SqliteStore::reader_, [&](SqliteReader& reader) { return reader.find(tenant, id); });
}
Result<std::optional<Run>> SqliteStore::find_latest(const KeyName& name) {
  return read(&SqliteStore::reader_, [&](SqliteReader& reader) { return reader.find_latest(name); });
}
Result<Page> SqliteStore::list(const ListQuery& query) {
  if (!is_cursor(query.cursor)) return std::unexpected(bad_cursor());
  return read(&SqliteStore::lister_, [&](SqliteReader& reader) { return reader.list(query); });
}
Result<std::optional<Duplicates>> SqliteStore::find_duplicates(RunId id) {
  return read(&SqliteStore::reader_, [&](SqliteReader& reader) { return reader.find_duplicates(id); });
}

Result<StoreStats> SqliteStore::stats() {
  const auto dead_letters =
      read(&SqliteStore::reader_, [](SqliteReader& reader) { return reader.count_unacknowledged_dead_letters(); });
  if (!dead_letters) return std::unexpected(dead_letters.error());
  const std::lock_guard lock(open_runs_mutex_);
  StoreStats stats = open_runs_;
  stats.unacknowledged_dead_letters = *dead_letters;
  return stats;
}

std::optional<Error> SqliteStore::find_failure() {
  const std::lock_guard lock(failure_mutex_);
  return failure_;
}
void SqliteStore::probe(Done<std::monostate> done) {
  submit(std::move(done), [this](Applying) { return tables_->change([](Database&) {}); });
}

std::optional<Instant> SqliteStore::next_deadline() {
  const std::int64_t ms = next_deadline_ms_;
  if (ms == std::numeric_limits<std::int64_t>::max()) return std::nullopt;
  return from_ms(ms);
}

Result<DeadLetterPage> SqliteStore::list_dead_letters(const DeadLetterQuery& query) {
  if (!is_cursor(query.cursor)) return std::unexpected(bad_cursor());
  return read(&SqliteStore::lister_, [&](SqliteReader& reader) { return reader.list_dead_letters(query); });
}
Result<std::optional<DeadLetter>> SqliteStore::find_dead_letter(const std::optional<std::string>& tenant, Uuid id) {
  return read(&SqliteStore::lister_, [&](SqliteReader& reader) { return reader.find_dead_letter(tenant, id); });
}
Result<std::vector<DeadLetterMember>> SqliteStore::list_members(Uuid dead_letter, std::uint32_t limit,
                                                                MemberPosition after) {
  return read(&SqliteStore::lister_,
              [&](SqliteReader& reader) { return reader.list_members(dead_letter, limit, after); });
}
Result<std::optional<DeadLetter>> SqliteStore::acknowledge(const std::optional<std::string>& tenant, Uuid id,
                                                           const std::string& actor) {
  return call<std::optional<DeadLetter>>(
      [&, this](Applying with) { return tables_->acknowledge(tenant, id, actor, with.now); });
}

Result<std::optional<DeadLetterActionReply>> SqliteStore::act_on_dead_letter(const DeadLetterActionRequest& request) {
  return call<std::optional<DeadLetterActionReply>>(
      [request](Applying with) { return apply_dead_letter_action(with, request); });
}

Result<std::monostate> SqliteStore::add_token(const TokenRecord& token) {
  return call<std::monostate>(
      [&, this](Applying) { return tables_->change([&](Database& db) { write_token(db, token); }); });
}
Result<std::vector<TokenRecord>> SqliteStore::list_tokens() {
  return read(&SqliteStore::lister_, [](SqliteReader& reader) { return reader.list_tokens(); });
}
Result<bool> SqliteStore::revoke_token(const std::string& id) {
  return call<bool>([=, this](Applying with) {
    bool found = false;
    tables_->change([&](Database& db) {
      Statement revoke = db.prepare(find_sql("revoke_token"));
      revoke.bind_text(1, id).bind(2, to_ms(with.now));
      found = revoke.step();
      revoke.run();
    });
    return found;
  });
}

void SqliteStore::settle_with(SettleRequest request, TransactionalEffect effect, Done<SettleReply> done) {
  submit(std::move(done),
         [this, request = std::move(request), effect = std::move(effect)](Applying with) -> SettleReply {
           const auto run = with.tables.find(request.id);
           if (!run) return Error{Code::NOT_FOUND, "no such run"};
           if (!run->is_open() || run->as<Queued>() || run->fence != request.fence) return apply_settle(with, request);
           SettleRequest settled = request;
           settled.ending = tables_->in_savepoint(effect);
           return apply_settle(with, settled);
         });
}

}  // namespace latchkey
