#include <fmt/format.h>

#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <future>
#include <latchkey/latchkey.hpp>
#include <mutex>

#include "embedded/sqlite_transaction.hpp"
#include "engine/engine.hpp"
#include "engine/maintenance_thread.hpp"
#include "engine/run_once.hpp"
#include "engine/validate.hpp"
#include "keying/key_hash.hpp"
#include "store/sqlite/sqlite_store.hpp"
#include "store/sqlite/store_lock.hpp"

namespace latchkey {
namespace {

[[noreturn]] void raise(const Error& error) { throw Failure(std::string(facts(error.code).name), error.detail); }

template <class T>
T unwrap(Result<T> result) {
  if (!result) raise(result.error());
  return std::move(*result);
}

ClaimRequest make_claim(const OnceRequest& once, Random& random) {
  ClaimRequest request;
  request.tenant = once.tenant;
  request.function = once.function;
  request.key = once.key;
  request.key_hash = compute_key_hash(once.tenant, once.function, once.key);
  request.guard = once.while_running ? Guard::while_running : Guard::once;
  request.on_doubt = once.hold_doubt ? OnDoubt::hold : OnDoubt::rerun;
  request.window = once.window;
  request.lease = once.lease;
  request.retry.retries = once.retries;
  if (!once.fingerprint_of.empty()) request.fingerprint = sha256(once.fingerprint_of);
  request.caller = "library";
  request.claim = make_uuid_v7({}, random.next(), random.next());
  return request;
}

std::string describe_too_large(const std::string& result) {
  return fmt::format("the result has {} bytes; at most {} are stored", result.size(), kBodyBytesMax);
}

// Runs the user's callable on its own thread, so that heartbeats continue meanwhile.
class CallableEffect final : public SideEffect {
 public:
  explicit CallableEffect(const std::function<std::string()>& effect) : effect_(effect) {}

  Task<EffectResult> run(const Won&) override {
    co_return co_await asio::co_spawn(thread_, call(), asio::use_awaitable);
  }
  // A C++ callable cannot be stopped from outside. If its lease was lost, the fence refuses its result.
  void stop(StopReason) override {}

 private:
  Task<EffectResult> call() {
    try {
      std::string result = effect_();
      if (result.size() <= kBodyBytesMax) co_return EffectDone{std::move(result), {}};
      // The effect has happened and must not be retried, but there is no result to replay.
      co_return EffectFailed{
          .message = describe_too_large(result), .code = "BODY_TOO_LARGE", .retryable = false, .outcome_unknown = true};
    } catch (const std::exception& error) {
      co_return EffectFailed{.message = error.what(), .code = "EXCEPTION"};
    } catch (...) {
      co_return EffectFailed{.message = "an exception of unknown type", .code = "EXCEPTION"};
    }
  }

  const std::function<std::string()>& effect_;
  asio::thread_pool thread_{1};
};

// Does nothing: the effect of run_in_transaction() is part of the settlement.
class NoEffect final : public SideEffect {
 public:
  Task<EffectResult> run(const Won&) override { co_return EffectDone{}; }
  void stop(StopReason) override {}
};

// The store whose writer thread this is, while it executes a transactional effect. A call of the same store from the
// effect would wait for itself.
thread_local const SqliteStore* writer_of = nullptr;
struct EffectScope {
  explicit EffectScope(const SqliteStore* store) { writer_of = store; }
  ~EffectScope() { writer_of = nullptr; }
};

void refuse_inside_effect(const SqliteStore& store) {
  if (writer_of == &store)
    raise({Code::INVALID_ARGUMENT, "called inside a callable of run_in_transaction(), which it would wait for"});
}

// TransactionalClaims: its settle() runs the user's callable in the transaction that records the result.
class TransactionalClaims final : public ClaimStore {
 public:
  TransactionalClaims(ClaimStore& claims, SqliteStore& store, const std::function<std::string(Transaction&)>& effect)
      : claims_(claims), store_(store), effect_(effect) {}

  void claim(ClaimRequest request, Done<ClaimReply> done) override {
    claims_.claim(std::move(request), std::move(done));
  }
  void extend(std::vector<ExtendRequest> requests, Done<std::vector<ExtendReply>> done) override {
    claims_.extend(std::move(requests), std::move(done));
  }
  void settle(std::vector<SettleRequest> requests, Done<std::vector<SettleReply>> done) override {
    // Not retried: the ended transaction has rolled back the whole batch, with the commands of other callers.
    if (*ended_transaction_) {
      requests.front().ending =
          Fail{.message = "the effect ended the transaction it was in", .code = "SQL_ERROR", .retryable = false};
      return claims_.settle(std::move(requests), std::move(done));
    }
    const auto transactional_effect = [this, ended = ended_transaction_](sqlite3* handle) -> Ending {
      SqliteTransaction transaction(handle);
      const struct EndCheck {
        sqlite3* handle;
        std::atomic<bool>& ended;
        ~EndCheck() { ended = is_ended(handle); }
      } end_check{handle, *ended};
      const EffectScope scope(&store_);
      std::string result = effect_(transaction);
      if (result.size() <= kBodyBytesMax) return Complete{std::move(result), {}};
      return Fail{
          .message = describe_too_large(result), .code = "BODY_TOO_LARGE", .retryable = false};  // undoes its writes
    };
    store_.settle_with(std::move(requests.front()), transactional_effect,
                       [done = std::move(done)](Result<SettleReply> reply) mutable {
                         if (!reply) return done(std::unexpected(reply.error()));
                         done(std::vector{std::move(*reply)});
                       });
  }

 private:
  ClaimStore& claims_;
  SqliteStore& store_;
  const std::function<std::string(Transaction&)>& effect_;
  std::shared_ptr<std::atomic<bool>> ended_transaction_ = std::make_shared<std::atomic<bool>>(false);
};

// The caller's outcome from a run that was settled or is queued for its next attempt.
Outcome describe(const Run& run, How done, Instant now) {
  Outcome outcome{.how = done, .run_id = to_string(run.id()), .detail = run.last_error};
  if (const auto* completed = run.as<Completed>()) outcome.result = completed->result;
  if (run.as<Failed>() || run.as<Cancelled>()) outcome.how = How::failed;
  if (run.as<InDoubt>()) outcome.how = How::in_doubt;
  if (const auto* queued = run.as<Queued>()) {
    outcome.how = How::busy;
    outcome.retry_after = std::max(Duration{0}, queued->due_at - now);
  }
  return outcome;
}

struct Describe {
  Instant now;

  Outcome operator()(const Ran& ran) const { return describe(ran.run, How::ran, now); }
  Outcome operator()(const LostLease& lost) const { return {.how = How::lost, .run_id = to_string(lost.run)}; }
  Outcome operator()(const Replay& replay) const { return describe(replay.run, How::replayed, now); }
  Outcome operator()(const Busy& busy) const {
    return {.how = How::busy, .run_id = to_string(busy.run.id()), .retry_after = busy.retry_after};
  }
  Outcome operator()(const NotDue& not_due) const { return describe(not_due.run, How::busy, now); }
  Outcome operator()(const InDoubtReply& doubted) const {
    return {.how = How::in_doubt, .run_id = to_string(doubted.run.id()), .detail = doubted.run.last_error};
  }
  Outcome operator()(const Mismatch& mismatch) const {
    return {.how = How::reused, .run_id = to_string(mismatch.existing)};
  }
};

// Contexts: a pool of contexts on which callers wait. A writer that has just woken a caller may still use its context,
// so contexts are reused and destroyed only after the store.
class Contexts {
 public:
  std::unique_ptr<asio::io_context> borrow() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return std::make_unique<asio::io_context>();
    auto context = std::move(free_.back());
    free_.pop_back();
    context->restart();
    return context;
  }
  void give_back(std::unique_ptr<asio::io_context> context) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(context));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<asio::io_context>> free_;
};

}  // namespace

struct Latchkey::Parts {
  Contexts contexts;
  SystemClock clock;
  SystemRandom random;
  StoreLock lock;
  std::unique_ptr<SqliteStore> store;
  Engine engine;
  MaintenanceThread maintenance;

  explicit Parts(const std::string& file)
      : lock(unwrap(StoreLock::acquire(file, std::chrono::seconds{5}, clock))),
        store(unwrap(SqliteStore::open({.file = file}, clock, random))),
        engine(*store, clock, {}),
        maintenance(engine) {
    lock.record_store();
  }

  ~Parts() {
    maintenance.stop();
    store.reset();
  }

  // Runs a coroutine on the calling thread until it returns.
  template <class T>
  T wait_for(Task<T> task) {
    auto here = contexts.borrow();
    std::future<T> answer = asio::co_spawn(*here, std::move(task), asio::use_future);
    here->run();
    contexts.give_back(std::move(here));
    return answer.get();
  }
};

Latchkey::Latchkey(const std::string& sqlite_file) : parts_(std::make_unique<Parts>(sqlite_file)) {}
Latchkey::~Latchkey() = default;

Outcome Latchkey::run(const OnceRequest& once, const std::function<std::string()>& effect) {
  refuse_inside_effect(*parts_->store);
  CallableEffect callable(effect);
  const RunOnceReply reply = unwrap(parts_->wait_for(run_once(
      parts_->engine, parts_->clock, parts_->random, make_claim(once, parts_->random), callable, {.wait = once.wait})));
  return std::visit(Describe{parts_->store->now()}, reply);
}

Outcome Latchkey::run_in_transaction(const OnceRequest& once, const std::function<std::string(Transaction&)>& effect) {
  refuse_inside_effect(*parts_->store);
  TransactionalClaims claims(parts_->engine, *parts_->store, effect);
  NoEffect nothing;
  const RunOnceReply reply = unwrap(parts_->wait_for(
      run_once(claims, parts_->clock, parts_->random, make_claim(once, parts_->random), nothing, {.wait = once.wait})));
  return std::visit(Describe{parts_->store->now()}, reply);
}

}  // namespace latchkey
