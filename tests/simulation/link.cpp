#include "simulation/link.hpp"

#include "simulation/life_stage.hpp"

namespace latchkey::sim {
namespace {

constexpr Duration kTimeout = std::chrono::seconds{2};

std::optional<Run> find_by_id(Store& store, RunId id) { return store.find(std::nullopt, id).value_or(std::nullopt); }

std::vector<Before> read_before(Store& store, const ClaimRequest& request) {
  return {
      {store.find_latest({request.tenant, request.function, request.key, request.key_hash}).value_or(std::nullopt)}};
}
std::vector<Before> read_before(Store& store, const std::vector<EnqueueRequest>& requests) {
  std::vector<Before> before;
  for (const auto& request : requests)
    before.push_back({request.key.empty() || request.guard == Guard::none
                          ? std::nullopt
                          : store.find_latest({request.tenant, request.function, request.key, request.key_hash})
                                .value_or(std::nullopt)});
  return before;
}
std::vector<Before> read_before(Store& store, const auto& requests)
  requires requires { requests.front().fence; }
{
  std::vector<Before> before;
  for (const auto& request : requests) before.push_back({find_by_id(store, request.id)});
  return before;
}
std::vector<Before> read_before(Store&, const TakeRequest&) { return {}; }
std::vector<Before> read_before(Store& store, const MoveRequest& request) { return {{find_by_id(store, request.id)}}; }

// Replies are checked against the earlier state only if the request was alone in its batch.
void record(World& world, const ClaimRequest& request, const std::vector<Before>& before, const ClaimReply& reply) {
  world.after_commit(stage_of(reply), [&world, request, before, reply](bool alone) {
    world.history.saw(request, before.front(), reply, world.engine->store(), alone);
  });
}
void record(World& world, const TakeRequest& request, const std::vector<Before>&, const std::vector<Taken>& taken) {
  const LifeStage stage = taken.empty() ? LifeStage{} : stage_of(taken.front());
  world.after_commit(stage,
                     [&world, request, taken](bool) { world.history.saw(request, taken, world.engine->store()); });
}
void record(World& world, const MoveRequest& request, const std::vector<Before>& before, const MoveReply& reply) {
  world.after_commit(stage_of(reply), [&world, request, before, reply](bool alone) {
    world.history.saw(request, before.front(), reply, world.engine->store().now(), alone);
  });
}
void record(World& world, const std::vector<EnqueueRequest>& requests, const std::vector<Before>& before,
            const std::vector<EnqueueReply>& replies) {
  for (std::size_t i = 0; i < requests.size(); ++i)
    world.after_commit(stage_of(replies[i]), [&world, request = requests[i], was = before[i], reply = replies[i],
                                              single = requests.size() == 1](bool alone) {
      world.history.saw(request, was, reply, world.engine->store(), alone && single);
    });
}
void record(World& world, const auto& requests, const std::vector<Before>& before, const auto& replies)
  requires requires { requests.front().fence; }
{
  for (std::size_t i = 0; i < requests.size(); ++i) {
    LifeStage stage = stage_of(replies[i]);
    stage.fence = requests[i].fence;  // a heartbeat's reply has no run
    world.after_commit(
        stage, [&world, request = requests[i], was = before[i], reply = replies[i], single = requests.size() == 1](
                   bool alone) { world.history.saw(request, was, reply, alone && single); });
  }
}

// Requests that may have taken effect although the server crashed before its reply.
void note_unanswered(History&, const auto&) {}
void note_unanswered(History& history, const MoveRequest& request) { history.unanswered(request); }
void note_unanswered(History& history, const std::vector<SettleRequest>& requests) {
  for (const SettleRequest& request : requests) history.unanswered(request);
}

std::string describe(const ClaimReply& reply) {
  static constexpr const char* kNames[] = {"won", "busy", "not due", "doubted", "replay", "mismatch"};
  std::string text = kNames[reply.index()];
  if (const auto* won = std::get_if<Won>(&reply))
    text += " fence " + std::to_string(static_cast<std::uint64_t>(won->fence)) + " generation " +
            std::to_string(won->run.generation) + " attempt " + std::to_string(won->run.attempt);
  return text;
}
std::string describe(const std::vector<Taken>& taken) {
  std::string text = std::to_string(taken.size()) + " taken";
  for (const Taken& one : taken) text += " fence " + std::to_string(static_cast<std::uint64_t>(one.fence));
  return text;
}
std::string describe_one(const Error& error) { return std::string(facts(error.code).name); }
std::string describe_one(const Extended& extended) {
  return extended.cancel_requested ? "extended, cancel" : "extended";
}
std::string describe_one(const Mismatch&) { return "mismatch"; }
// Settled, Moved, Enqueued: the run's new state.
std::string describe_one(const auto& changed) {
  return to_string(changed.run.id()).substr(24) + " is " + std::string(to_string(changed.run.status()));
}
template <class... Ts>
std::string describe(const std::variant<Ts...>& reply) {
  return std::visit([](const auto& one) { return describe_one(one); }, reply);
}
template <class... Ts>
std::string describe(const std::vector<std::variant<Ts...>>& replies) {
  return replies.empty() ? "" : describe(replies.front());
}

std::string subject(const ClaimRequest& request) { return request.tenant + "/" + request.function + "/" + request.key; }
std::string subject(const TakeRequest&) { return ""; }
std::string subject(const MoveRequest& request) { return to_string(request.id).substr(24); }
std::string subject(const auto& requests) {
  if constexpr (requires { requests.front().fence; })
    return to_string(requests.front().id).substr(24) + " fence " +
           std::to_string(static_cast<std::uint64_t>(requests.front().fence));
  else
    return requests.front().tenant + "/" + requests.front().function + "/" + requests.front().key;
}

}  // namespace

template <class T>
void SimLink::answer(const std::shared_ptr<Call<T>>& call, Result<T> reply) {
  if (std::exchange(call->answered, true)) return;
  auto done = std::move(call->done);
  done(std::move(reply));
}

template <class Request, class T, class Verb>
void SimLink::send(const char* name, Request request, Done<T> done, Verb verb) {
  auto call = std::make_shared<Call<T>>(std::move(done));
  world_.clock.after(kTimeout, from_.life, [this, call] { answer<T>(call, fail(Code::REPLY_LOST, "no reply")); });
  const int copies = world_.chance(world_.plan.lose_percent) ? 0 : world_.chance(world_.plan.repeat_percent) ? 2 : 1;
  if (copies == 0 && world_.tracing) world_.trace(from_.name + " " + name + " " + subject(request) + ": request lost");
  for (int i = 0; i < copies; ++i)
    world_.clock.after(world_.travel(), nullptr,
                       [this, name, request, call, verb] { arrive<Request, T>(name, request, call, verb); });
}

template <class Request, class T, class Verb>
void SimLink::arrive(const char* name, Request request, std::shared_ptr<Call<T>> call, Verb verb) {
  if (!world_.engine) return;
  Store& store = world_.engine->store();
  const auto before = read_before(store, request);
  const std::uint64_t life = world_.server_life;
  const std::uint64_t expected = world_.expect_answer([this, request] { note_unanswered(world_.history, request); });
  (*world_.engine.*verb)(request, [this, name, request, before, call, life, expected](Result<T> reply) {
    if (world_.server_life != life) return;
    world_.answered(expected);
    world_.digest = world_.digest * 31 + static_cast<std::uint64_t>(world_.clock.elapsed().count()) + name[0];
    if (reply) record(world_, request, before, *reply);
    const bool lost = world_.chance(world_.plan.lose_percent);
    if (world_.tracing)
      world_.trace(from_.name + " " + name + " " + subject(request) + ": " +
                   (reply ? describe(*reply) : to_string(reply.error())) + (lost ? ", reply lost" : ""));
    if (lost) return;
    world_.clock.after(world_.travel(), from_.life, [this, call, reply] { answer<T>(call, reply); });
  });
  world_.commit_soon();
}

void SimLink::claim(ClaimRequest request, Done<ClaimReply> done) {
  from_.claims.try_emplace(request.claim, false);
  auto checked = [this, id = request.claim, done = std::move(done)](Result<ClaimReply> reply) mutable {
    if (reply) {
      if (const auto* busy = std::get_if<Busy>(&*reply))
        if (const auto* running = busy->run.as<Running>()) {
          const auto own = from_.claims.find(running->claim);
          world_.history.check(own == from_.claims.end() || own->second, from_.name + " was refused by its own claim");
        }
      from_.claims[id] |= std::holds_alternative<Won>(*reply);
    }
    done(std::move(reply));
  };
  send<ClaimRequest, ClaimReply>("claim", std::move(request), std::move(checked), &Engine::claim);
}
void SimLink::extend(std::vector<ExtendRequest> requests, Done<std::vector<ExtendReply>> done) {
  send<std::vector<ExtendRequest>, std::vector<ExtendReply>>("extend", std::move(requests), std::move(done),
                                                             &Engine::extend);
}
void SimLink::settle(std::vector<SettleRequest> requests, Done<std::vector<SettleReply>> done) {
  send<std::vector<SettleRequest>, std::vector<SettleReply>>("settle", std::move(requests), std::move(done),
                                                             &Engine::settle);
}
void SimLink::enqueue(std::vector<EnqueueRequest> requests, Done<std::vector<EnqueueReply>> done) {
  send<std::vector<EnqueueRequest>, std::vector<EnqueueReply>>("enqueue", std::move(requests), std::move(done),
                                                               &Engine::enqueue);
}
void SimLink::take(TakeRequest request, Done<std::vector<Taken>> done) {
  send<TakeRequest, std::vector<Taken>>("take", std::move(request), std::move(done), &Engine::take);
}
void SimLink::move(MoveRequest request, Done<MoveReply> done) {
  send<MoveRequest, MoveReply>("move", std::move(request), std::move(done), &Engine::move);
}

}  // namespace latchkey::sim
