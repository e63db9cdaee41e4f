// The store's verbs: each submits a command to the writers.
#include <boost/asio/post.hpp>
#include <future>

#include "base/assert.hpp"
#include "store/postgres/pg_store.hpp"
#include "store/postgres/statements.hpp"

namespace latchkey {

using namespace pg;

namespace {

template <class T, class Plan, class Apply>
class TypedCommand final : public PgCommand {
 public:
  TypedCommand(Done<T> done, Plan plan, Apply apply)
      : done_(std::move(done)), plan_(std::move(plan)), apply_(std::move(apply)) {}
  void plan(ReadSet& read_set) override { plan_(read_set); }
  void apply(Applying with) override { reply_.emplace(apply_(with)); }
  void finish(const Error* failed) override {
    if (failed) return done_(std::unexpected(*failed));
    LK_ASSERT(reply_);
    done_(std::move(*reply_));
  }

 private:
  Done<T> done_;
  Plan plan_;
  Apply apply_;
  std::optional<T> reply_;
};

template <class Request>
using Many = std::shared_ptr<const std::vector<Request>>;

template <class Request>
Many<Request> share(std::vector<Request> requests) {
  return std::make_shared<const std::vector<Request>>(std::move(requests));
}

template <auto one, class Request>
auto each(Many<Request> requests) {
  return [requests](Applying with) {
    std::vector<decltype(one(with, requests->front()))> replies;
    replies.reserve(requests->size());
    for (const Request& request : *requests) {
      static_cast<PgTables&>(with.tables).begin_request();
      replies.push_back(one(with, request));
    }
    return replies;
  };
}

// Replies in order, and the indexes of those that are placeholders for contended requests.
template <class Reply>
struct Parts {
  std::vector<Reply> replies;
  std::vector<std::size_t> contended;
};

// Applies each request on its own. A request with the same name as a contended one is skipped, too, so that requests of
// one name are applied in order.
template <auto one, class Request, class Name>
auto apply_each_isolated(Many<Request> requests, Name name) {
  return [requests, name](Applying with) {
    auto& tables = static_cast<PgTables&>(with.tables);
    std::set<Uuid> contended;
    Parts<decltype(one(with, requests->front()))> parts;
    parts.replies.reserve(requests->size());
    for (const Request& request : *requests) {
      const PgTables::Savepoint savepoint = tables.begin_request();
      try {
        if (!contended.empty() && contended.contains(name(request))) throw LockContended{};
        auto reply = one(with, request);
        tables.end_request();
        parts.replies.push_back(std::move(reply));
      } catch (const NeedsRead&) {
        tables.undo_request(savepoint);
        tables.request_another_round();
        parts.replies.emplace_back(lock_contended_error());  // never sent: the command is applied again
      } catch (const LockContended&) {
        tables.undo_request(savepoint);
        contended.insert(name(request));
        parts.contended.push_back(parts.replies.size());
        parts.replies.emplace_back(lock_contended_error());
      }
    }
    return parts;
  };
}

template <class Request, class Plan>
auto plan_all(Many<Request> requests, Plan plan) {
  return [requests, plan](ReadSet& read_set) {
    for (const Request& request : *requests) plan(read_set, request);
  };
}

// Collects the replies of a call whose contended requests were submitted again.
template <class Reply>
struct ReplyCollector {
  std::vector<Reply> replies;
  Done<std::vector<Reply>> done;
  std::size_t left = 0;

  // The requests with these indexes got replies, or one error for all.
  void add(const std::vector<std::size_t>& indexes, Result<std::vector<Reply>> results) {
    for (std::size_t i = 0; i < indexes.size(); ++i)
      replies[indexes[i]] = results ? std::move((*results)[i]) : Reply(results.error());
    if (--left == 0) done(std::move(replies));
  }
};

constexpr auto kPlanRun = [](ReadSet& read_set, const auto& request) { read_set.runs.insert(seq_in(request.id)); };

constexpr auto kPlanSettle = [](ReadSet& read_set, const SettleRequest& request) {
  kPlanRun(read_set, request);
  if (const auto* complete = std::get_if<Complete>(&request.ending)) read_set.counters += complete->follow_ups.size();
};

void plan_key(ReadSet& read_set, const ClaimRequest& request) {
  read_set.counters += 1;
  read_set.fences += 1;
  if (const auto hash = lookup_hash(request)) read_set.keys_snapshot.insert(name_key(*hash));
}
void plan_key(ReadSet& read_set, const EnqueueRequest& request) {
  read_set.counters += 1;
  const auto hash = lookup_hash(request);
  if (!hash) return;
  // A job with predecessors may be rejected without an insert, which would not detect that its key exists: read it.
  (request.after.empty() ? read_set.keys_assumed_new : read_set.keys_snapshot).insert(name_key(*hash));
}

std::string tenant_of(const EnqueueRequest& request) { return request.tenant; }
std::string tenant_of(const SettleRequest& request) { return request.tenant.value_or(""); }

std::size_t bytes_of(const ClaimRequest& request) { return request.input.size(); }
std::size_t bytes_of(const EnqueueRequest& request) { return request.input.size(); }
std::size_t bytes_of(const SettleRequest& request) {
  const auto* complete = std::get_if<Complete>(&request.ending);
  if (!complete) return 0;
  std::size_t bytes = complete->result.size();
  for (const auto& follow_up : complete->follow_ups) bytes += follow_up.input.size();
  return bytes;
}

// The first attempt skips a locked row, so that its batch does not wait. The contended writer's attempts queue for the
// lock: under constant contention a SKIP LOCKED probe never succeeds.
template <class Act>
auto with_lock_retry(Act act) {
  return [act = std::move(act), waits = false](Applying with) mutable {
    auto& tables = static_cast<PgTables&>(with.tables);
    if (waits) tables.block_on_row_lock();
    try {
      return act(tables, with);
    } catch (const LockContended&) {
      waits = true;
      throw;
    }
  };
}

// Batch ids are purged after this time. It must exceed kCommitResolutionTimeout.
constexpr Duration kBatchRetention = std::chrono::hours{1};
// Counts as the size of a note. It limits a batch to hundreds of notes, because its other commands wait for them.
constexpr std::size_t kNoteBytes = 8 << 10;
constexpr auto kNoPlan = [](ReadSet&) {};

}  // namespace

template <class T, class Plan, class Apply>
void PostgresStore::submit(Done<T> done, Plan plan, Apply apply, PgTraits traits) {
  std::unique_ptr<PgCommand> command =
      std::make_unique<TypedCommand<T, Plan, Apply>>(std::move(done), std::move(plan), std::move(apply));
  static_cast<PgTraits&>(*command) = std::move(traits);
  command->submitted = host_.elapsed();
  {
    const std::lock_guard lock(mutex_);
    if (!is_closed_) backlog_.push_back(std::move(command));
  }
  if (!command) return boost::asio::post(context_, [this] { wake_.ring(); });
  const Error closed{Code::SHUTTING_DOWN, "the store is closed"};
  command->finish(&closed);
}

template <auto one, class Request, class Reply, class Plan, class Name>
void PostgresStore::submit_each(std::vector<Request> requests, Done<std::vector<Reply>> done, Plan plan, Name name,
                                bool reply_early_if_read_only) {
  const auto shared = share(std::move(requests));
  std::size_t bytes = 0;
  for (const Request& request : *shared) bytes += bytes_of(request);
  if (shared->size() == 1)
    return submit(
        std::move(done), plan_all(shared, plan), each<one>(shared),
        {.bytes = bytes, .tenant = tenant_of(shared->front()), .reply_early_if_read_only = reply_early_if_read_only});
  auto then = [this, shared, plan, name, done = std::move(done)](Result<Parts<Reply>> parts) mutable {
    if (!parts) return done(std::unexpected(parts.error()));
    if (parts->contended.empty()) return done(std::move(parts->replies));
    std::map<Uuid, std::vector<std::size_t>> by_name;
    for (const std::size_t index : parts->contended) by_name[name((*shared)[index])].push_back(index);
    // The collector is used by the store's thread only.
    const auto collector =
        std::make_shared<ReplyCollector<Reply>>(std::move(parts->replies), std::move(done), by_name.size());
    for (auto& [unused, indexes] : by_name) {
      std::vector<Request> again;
      std::size_t again_bytes = 0;
      for (const std::size_t index : indexes) again_bytes += bytes_of(again.emplace_back((*shared)[index]));
      const auto shared_again = share(std::move(again));
      submit<std::vector<Reply>>(
          [collector, indexes](Result<std::vector<Reply>> results) { collector->add(indexes, std::move(results)); },
          plan_all(shared_again, plan), each<one>(shared_again),
          {.bytes = again_bytes, .requests = indexes.size(), .tenant = tenant_of(shared_again->front())});
    }
  };
  submit<Parts<Reply>>(std::move(then), plan_all(shared, plan), apply_each_isolated<one>(shared, name),
                       {.bytes = bytes,
                        .requests = shared->size(),
                        .reply_mode = PgTraits::ReplyMode::per_request,
                        .reply_early_if_read_only = reply_early_if_read_only});
}

template <class T, class Plan, class Apply>
Result<T> PostgresStore::call(Plan plan, Apply apply) {
  auto promise = std::make_shared<std::promise<Result<T>>>();
  auto answer = promise->get_future();
  submit<T>([promise](Result<T> reply) { promise->set_value(std::move(reply)); }, std::move(plan), std::move(apply));
  return answer.get();
}

void PostgresStore::claim(ClaimRequest request, Done<ClaimReply> done) {
  const auto shared = std::make_shared<const ClaimRequest>(std::move(request));
  submit(
      std::move(done), [shared](ReadSet& read_set) { plan_key(read_set, *shared); },
      [shared](Applying with) { return apply_claim(with, *shared); },
      {.bytes = bytes_of(*shared), .tenant = shared->tenant, .reply_early_if_read_only = true});
}
void PostgresStore::extend(std::vector<ExtendRequest> requests, Done<std::vector<ExtendReply>> done) {
  const auto shared = share(std::move(requests));
  // A contended run must not prevent the extension of the others.
  const auto extend_each = [shared](Applying with) {
    std::vector<ExtendReply> replies;
    for (const ExtendRequest& request : *shared) {
      static_cast<PgTables&>(with.tables).begin_request();
      try {
        replies.push_back(apply_extend(with, request));
      } catch (const LockContended&) {
        if (shared->size() == 1) throw;  // the command is parked and retried
        replies.emplace_back(lock_contended_error());
      }
    }
    return replies;
  };
  submit(std::move(done), plan_all(shared, kPlanRun), extend_each, {.requests = shared->size()});
}
void PostgresStore::settle(std::vector<SettleRequest> requests, Done<std::vector<SettleReply>> done) {
  submit_each<apply_settle>(std::move(requests), std::move(done), kPlanSettle,
                            [](const SettleRequest& request) { return request.id; });
}
void PostgresStore::enqueue(std::vector<EnqueueRequest> requests, Done<std::vector<EnqueueReply>> done) {
  submit_each<apply_enqueue>(
      std::move(requests), std::move(done),
      [](ReadSet& read_set, const EnqueueRequest& request) {
        plan_key(read_set, request);
        for (const RunId& predecessor : request.after) read_set.runs.insert(seq_in(predecessor));
      },
      [](const EnqueueRequest& request) {
        // A request with neither key nor predecessors is never contended.
        if (const auto hash = lookup_hash(request)) return name_key(*hash);
        return request.after.empty() ? Uuid{} : request.after.front();
      },
      true);
}
void PostgresStore::take(TakeRequest request, Done<std::vector<Taken>> done) {
  const auto shared = std::make_shared<const TakeRequest>(std::move(request));
  submit(
      std::move(done),
      [shared](ReadSet& read_set) {
        read_set.ready[{shared->tenant, shared->functions}].count += shared->limit;
        // Most takes find few jobs; a take that finds more draws more fences in the next round.
        read_set.fences = std::max<std::uint64_t>(read_set.fences, std::min<std::uint64_t>(shared->limit, kDrawn));
      },
      [shared](Applying with) { return apply_take(with, *shared); }, {.requests = shared->limit});
}
void PostgresStore::move(MoveRequest request, Done<MoveReply> done) {
  submit(
      std::move(done), [id = request.id](ReadSet& read_set) { read_set.runs.insert(seq_in(id)); },
      [request = std::move(request)](Applying with) { return apply_move(with, request); });
}
void PostgresStore::sweep(std::uint32_t limit, Done<Swept> done) {
  submit(std::move(done), kNoPlan, [limit](Applying with) { return apply_sweep(with, limit); });
}
void PostgresStore::purge(Retention retention, std::uint32_t limit, Done<Swept> done) {
  submit(
      std::move(done), [this](ReadSet& read_set) { plan_old_batches(read_set, clock_.now() - kBatchRetention); },
      [retention, limit](Applying with) {
        const bool more = static_cast<PgTables&>(with.tables).erase_old_batches(with.now - kBatchRetention);
        Swept swept = apply_purge(with, retention, limit);
        swept.more |= more;
        return swept;
      });
}
void PostgresStore::note_duplicates(std::vector<DuplicateNote> notes, Done<std::monostate> done) {
  const auto shared = share(std::move(notes));
  const auto add = [shared](Applying with) {
    static_cast<PgTables&>(with.tables).add_all_duplicates(*shared);
    return std::monostate{};
  };
  // best_effort: a retry would count twice. A count that is too low is possible after a crash, too.
  submit(std::move(done), kNoPlan, add,
         {.bytes = shared->size() * kNoteBytes,
          .requests = shared->size(),
          .reply_mode = PgTraits::ReplyMode::best_effort});
}
void PostgresStore::probe(Done<std::monostate> done) {
  submit(std::move(done), kNoPlan, [](Applying with) {
    static_cast<PgTables&>(with.tables).write({sql().probe, {}});
    return std::monostate{};
  });
}
Result<std::optional<DeadLetterActionReply>> PostgresStore::act_on_dead_letter(const DeadLetterActionRequest& request) {
  return call<std::optional<DeadLetterActionReply>>(kNoPlan, with_lock_retry([request](PgTables&, Applying with) {
                                                      return apply_dead_letter_action(with, request);
                                                    }));
}
Result<std::optional<DeadLetter>> PostgresStore::acknowledge(const std::optional<std::string>& tenant, Uuid id,
                                                             const std::string& actor) {
  return call<std::optional<DeadLetter>>(kNoPlan, with_lock_retry([tenant, id, actor](PgTables& tables, Applying with) {
                                           return tables.acknowledge(tenant, id, actor, with.now);
                                         }));
}
Result<std::monostate> PostgresStore::add_token(const TokenRecord& token) {
  const auto added =
      call<bool>(kNoPlan, [token](Applying with) { return static_cast<PgTables&>(with.tables).add_token(token); });
  if (!added) return std::unexpected(added.error());
  if (!*added) return fail(Code::STORE_UNAVAILABLE, "a token with this id exists; nothing was changed");
  return std::monostate{};
}
Result<bool> PostgresStore::revoke_token(const std::string& id) {
  return call<bool>(
      kNoPlan, with_lock_retry([id](PgTables& tables, Applying with) { return tables.revoke_token(id, with.now); }));
}

}  // namespace latchkey
