// The verbs: each becomes a command for the lanes.
#include <boost/asio/post.hpp>
#include <future>

#include "base/assert.hpp"
#include "store/postgres/pg_store.hpp"

namespace latchkey {

using namespace pg;

namespace {

template <class T, class Plan, class Apply>
class TypedCommand final : public PgCommand {
 public:
  TypedCommand(Done<T> done, Plan plan, Apply apply)
      : done_(std::move(done)), plan_(std::move(plan)), apply_(std::move(apply)) {}
  void plan(Needs& needs) override { plan_(needs); }
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

template <class Request>
auto plan_runs(Many<Request> requests) {
  return [requests](Needs& needs) {
    for (const Request& request : *requests) needs.runs.insert(seq_in(request.id));
  };
}

void plan_key(Needs& needs, const ClaimRequest& request) {
  needs.counters += 1;
  if (const auto hash = lookup_hash(request)) needs.keys.insert(name_key(*hash));
}
void plan_key(Needs& needs, const EnqueueRequest& request) {
  needs.counters += 1;
  const auto hash = lookup_hash(request);
  if (!hash) return;
  // What is refused for its predecessors writes no key, and so would not be judged.
  (request.after.empty() ? needs.new_keys : needs.keys).insert(name_key(*hash));
}

// A row that somebody else has is passed over the first time: its batch must not be held up. From then on, apart, it is
// waited for in turn: what many lanes write to may be free at no moment at which it is merely looked at.
template <class Act>
auto in_turn(Act act) {
  return [act = std::move(act), waits = false](Applying with) mutable {
    auto& tables = static_cast<PgTables&>(with.tables);
    if (waits) tables.wait_in_turn();
    try {
      return act(tables, with);
    } catch (const Held&) {
      waits = true;
      throw;
    }
  };
}

constexpr Duration kBatchesKept = std::chrono::hours{1};
constexpr auto kNothing = [](Needs&) {};

}  // namespace

template <class T, class Plan, class Apply>
void PostgresStore::submit(Done<T> done, Plan plan, Apply apply) {
  std::unique_ptr<PgCommand> command =
      std::make_unique<TypedCommand<T, Plan, Apply>>(std::move(done), std::move(plan), std::move(apply));
  {
    const std::lock_guard lock(mutex_);
    if (!closing_) waiting_.push_back(std::move(command));
  }
  if (!command) return boost::asio::post(context_, [this] { wake_.ring(); });
  const Error closed{Code::SHUTTING_DOWN, "the store is closed"};
  command->finish(&closed);
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
      std::move(done), [shared](Needs& needs) { plan_key(needs, *shared); },
      [shared](Applying with) { return apply_claim(with, *shared); });
}
void PostgresStore::extend(std::vector<ExtendRequest> requests, Done<std::vector<ExtendReply>> done) {
  const auto shared = share(std::move(requests));
  // One that somebody holds must not keep the others from being extended.
  submit(std::move(done), plan_runs(shared), [shared](Applying with) {
    std::vector<ExtendReply> replies;
    for (const ExtendRequest& request : *shared) {
      static_cast<PgTables&>(with.tables).begin_request();
      try {
        replies.push_back(apply_extend(with, request));
      } catch (const Held&) {
        if (shared->size() == 1) throw;  // it is asked for again, apart
        replies.emplace_back(Error{Code::STORE_UNAVAILABLE, "somebody's open transaction holds this run"});
      }
    }
    return replies;
  });
}
void PostgresStore::settle(std::vector<SettleRequest> requests, Done<std::vector<SettleReply>> done) {
  const auto shared = share(std::move(requests));
  submit(std::move(done), plan_runs(shared), each<apply_settle>(shared));
}
void PostgresStore::enqueue(std::vector<EnqueueRequest> requests, Done<std::vector<EnqueueReply>> done) {
  const auto shared = share(std::move(requests));
  submit(
      std::move(done),
      [shared](Needs& needs) {
        for (const EnqueueRequest& request : *shared) {
          plan_key(needs, request);
          for (const RunId& predecessor : request.after) needs.runs.insert(seq_in(predecessor));
        }
      },
      each<apply_enqueue>(shared));
}
void PostgresStore::take(TakeRequest request, Done<std::vector<Taken>> done) {
  const auto shared = std::make_shared<const TakeRequest>(std::move(request));
  submit(
      std::move(done),
      [shared](Needs& needs) { needs.ready[{shared->tenant, shared->functions}].count += shared->limit; },
      [shared](Applying with) { return apply_take(with, *shared); });
}
void PostgresStore::move(MoveRequest request, Done<MoveReply> done) {
  submit(
      std::move(done), [id = request.id](Needs& needs) { needs.runs.insert(seq_in(id)); },
      [request = std::move(request)](Applying with) { return apply_move(with, request); });
}
void PostgresStore::sweep(std::uint32_t limit, Done<Swept> done) {
  submit(std::move(done), kNothing, [limit](Applying with) { return apply_sweep(with, limit); });
}
void PostgresStore::purge(Retention retention, std::uint32_t limit, Done<Swept> done) {
  submit(std::move(done), kNothing, [retention, limit](Applying with) {
    // Names of batches are asked for within moments, if ever.
    static_cast<PgTables&>(with.tables)
        .write({"DELETE FROM latchkey.batches WHERE abs(at) < $1", Params().add(to_ms(with.now - kBatchesKept))});
    return apply_purge(with, retention, limit);
  });
}
void PostgresStore::note_duplicates(std::vector<DuplicateNote> notes, Done<std::monostate> done) {
  const auto shared = share(std::move(notes));
  submit(std::move(done), kNothing, [shared](Applying with) {
    static_cast<PgTables&>(with.tables).add_all_duplicates(*shared);
    return std::monostate{};
  });
}
// Whatever is written is named: the batch's own mark is enough.
void PostgresStore::probe(Done<std::monostate> done) {
  submit(std::move(done), kNothing, [](Applying with) {
    static_cast<PgTables&>(with.tables).write({"SELECT 1", {}});
    return std::monostate{};
  });
}
Result<std::optional<LetterMoved>> PostgresStore::move_dead_letter(const LetterMove& wish) {
  return call<std::optional<LetterMoved>>(
      kNothing, in_turn([wish](PgTables&, Applying with) { return apply_letter_move(with, wish); }));
}
Result<std::optional<DeadLetter>> PostgresStore::acknowledge(const std::optional<std::string>& tenant, Uuid id,
                                                             const std::string& actor) {
  return call<std::optional<DeadLetter>>(kNothing, in_turn([tenant, id, actor](PgTables& tables, Applying with) {
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
  return call<bool>(kNothing,
                    in_turn([id](PgTables& tables, Applying with) { return tables.revoke_token(id, with.now); }));
}

}  // namespace latchkey
