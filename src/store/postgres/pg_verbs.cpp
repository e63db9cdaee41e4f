// The verbs: each becomes a command for the lanes.
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
  void plan(ReadSet& needs) override { plan_(needs); }
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

// Replies in order, and which of them are still to come.
template <class Reply>
struct Parts {
  std::vector<Reply> replies;
  std::vector<std::size_t> held;
};

// What has the name of one that is held waits behind it: they keep their order.
template <auto one, class Request, class Name>
auto apply_each_isolated(Many<Request> requests, Name name) {
  return [requests, name](Applying with) {
    auto& tables = static_cast<PgTables&>(with.tables);
    std::set<Uuid> held;
    Parts<decltype(one(with, requests->front()))> parts;
    parts.replies.reserve(requests->size());
    for (const Request& request : *requests) {
      const PgTables::Mark mark = tables.begin_request();
      try {
        if (!held.empty() && held.contains(name(request))) throw LockContended{};
        auto reply = one(with, request);
        tables.end_request();
        parts.replies.push_back(std::move(reply));
      } catch (const NeedsRead&) {
        tables.undo_request(mark);
        tables.request_another_round();
        parts.replies.emplace_back(lock_contended_error());  // told to nobody
      } catch (const LockContended&) {
        tables.undo_request(mark);
        held.insert(name(request));
        parts.held.push_back(parts.replies.size());
        parts.replies.emplace_back(lock_contended_error());
      }
    }
    return parts;
  };
}

template <class Request, class Plan>
auto plan_all(Many<Request> requests, Plan plan) {
  return [requests, plan](ReadSet& needs) {
    for (const Request& request : *requests) plan(needs, request);
  };
}

// The answer to a call of which some is still to come.
template <class Reply>
struct ReplyCollector {
  std::vector<Reply> replies;
  Done<std::vector<Reply>> done;
  std::size_t left = 0;

  // Those at these places have come, or the error that befell them.
  void add(const std::vector<std::size_t>& places, Result<std::vector<Reply>> come) {
    for (std::size_t i = 0; i < places.size(); ++i)
      replies[places[i]] = come ? std::move((*come)[i]) : Reply(come.error());
    if (--left == 0) done(std::move(replies));
  }
};

constexpr auto kPlanRun = [](ReadSet& needs, const auto& request) { needs.runs.insert(seq_in(request.id)); };

constexpr auto kPlanSettle = [](ReadSet& needs, const SettleRequest& request) {
  kPlanRun(needs, request);
  if (const auto* complete = std::get_if<Complete>(&request.ending)) needs.counters += complete->follow_ups.size();
};

void plan_key(ReadSet& needs, const ClaimRequest& request) {
  needs.counters += 1;
  needs.fences += 1;
  if (const auto hash = lookup_hash(request)) needs.keys_snapshot.insert(name_key(*hash));
}
void plan_key(ReadSet& needs, const EnqueueRequest& request) {
  needs.counters += 1;
  const auto hash = lookup_hash(request);
  if (!hash) return;
  // What is refused for its predecessors writes no key, and so would not be judged.
  (request.after.empty() ? needs.keys_assumed_new : needs.keys_snapshot).insert(name_key(*hash));
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

// A row that somebody else has is passed over the first time: its batch must not be held up. From then on, apart, it is
// waited for in turn: what many lanes write to may be free at no moment at which it is merely looked at.
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

constexpr Duration kBatchesKept = std::chrono::hours{1};
// What a note weighs, for the room that it takes in a batch: others in it wait for hundreds of them, not for thousands.
constexpr std::size_t kNoteBytes = 8 << 10;
constexpr auto kNothing = [](ReadSet&) {};

}  // namespace

template <class T, class Plan, class Apply>
void PostgresStore::submit(Done<T> done, Plan plan, Apply apply, PgTraits traits) {
  std::unique_ptr<PgCommand> command =
      std::make_unique<TypedCommand<T, Plan, Apply>>(std::move(done), std::move(plan), std::move(apply));
  static_cast<PgTraits&>(*command) = std::move(traits);
  command->submitted = host_.elapsed();
  {
    const std::lock_guard lock(mutex_);
    if (!closing_) waiting_.push_back(std::move(command));
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
    if (parts->held.empty()) return done(std::move(parts->replies));
    std::map<Uuid, std::vector<std::size_t>> places;
    for (const std::size_t place : parts->held) places[name((*shared)[place])].push_back(place);
    // All of what follows is this store's thread's.
    const auto all = std::make_shared<ReplyCollector<Reply>>(std::move(parts->replies), std::move(done), places.size());
    for (auto& [named, of] : places) {
      std::vector<Request> held;
      std::size_t heavy = 0;
      for (const std::size_t place : of) heavy += bytes_of(held.emplace_back((*shared)[place]));
      const auto again = share(std::move(held));
      submit<std::vector<Reply>>([all, of](Result<std::vector<Reply>> come) { all->add(of, std::move(come)); },
                                 plan_all(again, plan), each<one>(again),
                                 {.bytes = heavy, .requests = of.size(), .tenant = tenant_of(again->front())});
    }
  };
  submit<Parts<Reply>>(std::move(then), plan_all(shared, plan), apply_each_isolated<one>(shared, name),
                       {.bytes = bytes,
                        .requests = shared->size(),
                        .manner = PgTraits::ReplyMode::per_request,
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
      std::move(done), [shared](ReadSet& needs) { plan_key(needs, *shared); },
      [shared](Applying with) { return apply_claim(with, *shared); },
      {.bytes = bytes_of(*shared), .tenant = shared->tenant, .reply_early_if_read_only = true});
}
void PostgresStore::extend(std::vector<ExtendRequest> requests, Done<std::vector<ExtendReply>> done) {
  const auto shared = share(std::move(requests));
  // One that somebody holds must not keep the others from being extended.
  const auto extend_each = [shared](Applying with) {
    std::vector<ExtendReply> replies;
    for (const ExtendRequest& request : *shared) {
      static_cast<PgTables&>(with.tables).begin_request();
      try {
        replies.push_back(apply_extend(with, request));
      } catch (const LockContended&) {
        if (shared->size() == 1) throw;  // it is asked for again, apart
        replies.emplace_back(Error{Code::STORE_UNAVAILABLE, "somebody's open transaction holds this run"});
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
      [](ReadSet& needs, const EnqueueRequest& request) {
        plan_key(needs, request);
        for (const RunId& predecessor : request.after) needs.runs.insert(seq_in(predecessor));
      },
      [](const EnqueueRequest& request) {
        // What has neither key nor predecessors is held by nobody.
        if (const auto hash = lookup_hash(request)) return name_key(*hash);
        return request.after.empty() ? Uuid{} : request.after.front();
      },
      true);
}
void PostgresStore::take(TakeRequest request, Done<std::vector<Taken>> done) {
  const auto shared = std::make_shared<const TakeRequest>(std::move(request));
  submit(
      std::move(done),
      [shared](ReadSet& needs) {
        needs.ready[{shared->tenant, shared->functions}].count += shared->limit;
        // Mostly there is little to be had: where there is more, more are drawn.
        needs.fences = std::max<std::uint64_t>(needs.fences, std::min<std::uint64_t>(shared->limit, kDrawn));
      },
      [shared](Applying with) { return apply_take(with, *shared); }, {.requests = shared->limit});
}
void PostgresStore::move(MoveRequest request, Done<MoveReply> done) {
  submit(
      std::move(done), [id = request.id](ReadSet& needs) { needs.runs.insert(seq_in(id)); },
      [request = std::move(request)](Applying with) { return apply_move(with, request); });
}
void PostgresStore::sweep(std::uint32_t limit, Done<Swept> done) {
  submit(std::move(done), kNothing, [limit](Applying with) { return apply_sweep(with, limit); });
}
void PostgresStore::purge(Retention retention, std::uint32_t limit, Done<Swept> done) {
  submit(
      std::move(done), [this](ReadSet& needs) { plan_old_names(needs, clock_.now() - kBatchesKept); },
      [retention, limit](Applying with) {
        const bool more = static_cast<PgTables&>(with.tables).erase_old_names(with.now - kBatchesKept);
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
  // Nothing would tell those that are noted again from new ones. Too few is what a crash may leave as well.
  submit(
      std::move(done), kNothing, add,
      {.bytes = shared->size() * kNoteBytes, .requests = shared->size(), .manner = PgTraits::ReplyMode::best_effort});
}
void PostgresStore::probe(Done<std::monostate> done) {
  submit(std::move(done), kNothing, [](Applying with) {
    static_cast<PgTables&>(with.tables).write({sql().probe, {}});
    return std::monostate{};
  });
}
Result<std::optional<LetterMoved>> PostgresStore::move_dead_letter(const LetterMove& wish) {
  return call<std::optional<LetterMoved>>(
      kNothing, with_lock_retry([wish](PgTables&, Applying with) { return apply_letter_move(with, wish); }));
}
Result<std::optional<DeadLetter>> PostgresStore::acknowledge(const std::optional<std::string>& tenant, Uuid id,
                                                             const std::string& actor) {
  return call<std::optional<DeadLetter>>(kNothing,
                                         with_lock_retry([tenant, id, actor](PgTables& tables, Applying with) {
                                           return tables.acknowledge(tenant, id, actor, with.now);
                                         }));
}
Result<std::monostate> PostgresStore::add_token(const TokenRecord& token) {
  const auto added =
      call<bool>(kNothing, [token](Applying with) { return static_cast<PgTables&>(with.tables).add_token(token); });
  if (!added) return std::unexpected(added.error());
  if (!*added) return fail(Code::STORE_UNAVAILABLE, "there is a token of this id; nothing was changed");
  return std::monostate{};
}
Result<bool> PostgresStore::revoke_token(const std::string& id) {
  return call<bool>(
      kNothing, with_lock_retry([id](PgTables& tables, Applying with) { return tables.revoke_token(id, with.now); }));
}

}  // namespace latchkey
