#include "engine/engine.hpp"

#include <spdlog/spdlog.h>

#include "base/seeded_bug.hpp"
#include "engine/validate.hpp"

namespace latchkey {
namespace {

// Forwards the valid requests of a batch, and returns an error for each of the others, in the order of the requests.
template <class Reply, class Request, class Forward>
void forward_good(std::vector<Request> requests, Done<std::vector<Reply>> done, Forward forward) {
  std::vector<std::optional<Error>> faults;
  bool any = false;
  for (const Request& request : requests) any |= faults.emplace_back(find_fault(request)).has_value();
  if (!any) return forward(std::move(requests), std::move(done));
  std::vector<Request> good;
  for (std::size_t i = 0; i < requests.size(); ++i)
    if (!faults[i]) good.push_back(std::move(requests[i]));
  forward(std::move(good),
          [faults = std::move(faults), done = std::move(done)](Result<std::vector<Reply>> some) mutable {
            if (!some) return done(std::unexpected(some.error()));
            std::vector<Reply> all;
            auto next = some->begin();
            for (auto& fault : faults) all.push_back(fault ? Reply{std::move(*fault)} : std::move(*next++));
            done(std::move(all));
          });
}

}  // namespace

Engine::Engine(Store& store, Clock& clock, EngineSettings settings)
    : store_(store), clock_(clock), settings_(settings), callbacks_(std::make_shared<CallbackState>(settings)) {}

void Engine::note(CallbackState& state, const ClaimReply& reply, std::string_view caller, Instant now) {
  if (const auto suppressed = find_suppressed(reply))
    state.suppressions.note(suppressed->run, suppressed->reason, caller, now);
}

// A completion is accepted even if some of its follow-ups are not created. Those are counted and logged.
void Engine::note_follow_ups(CallbackState& state, const Settled& settled, Instant now) {
  const auto maker = [&] { return "run " + to_string(settled.run.id()); };
  for (const EnqueueReply& reply : settled.follow_ups) {
    if (const auto* enqueued = std::get_if<Enqueued>(&reply); enqueued && enqueued->duplicate)
      state.suppressions.note(enqueued->run.id(), kDuplicate, maker(), now);
    const auto* mismatch = std::get_if<Mismatch>(&reply);
    if (!mismatch) continue;
    state.suppressions.note(mismatch->existing, facts(Code::KEY_REUSED).name, maker(), now);
    spdlog::warn("a follow-up of run {} was not created: its key was used with another fingerprint, by run {}",
                 to_string(settled.run.id()), to_string(mismatch->existing));
  }
}

void Engine::claim(ClaimRequest request, Done<ClaimReply> done) {
  if (auto fault = find_fault(request)) return done(std::unexpected(std::move(*fault)));
  const Instant now = store_.now();
  const std::uint64_t data_epoch = store_.data_epoch();
  // A call with a previous key may have won under that key. Only the store can find that out.
  if (auto known = request.key_before.empty() ? callbacks_->outcomes.find(request, now, data_epoch) : std::nullopt) {
    callbacks_->cached.fetch_add(1, std::memory_order_relaxed);
    if (!LK_SEEDED(cached_replay_not_counted)) note(*callbacks_, *known, request.caller, now);
    return done(std::move(*known));
  }
  std::string caller = request.caller;
  store_.claim(std::move(request), [state = callbacks_, &store = store_, data_epoch, caller = std::move(caller),
                                    done = std::move(done)](Result<ClaimReply> reply) mutable {
    if (reply && !std::holds_alternative<Won>(*reply)) {
      const Instant at = store.now();
      note(*state, *reply, caller, at);
      if (const auto* replay = std::get_if<Replay>(&*reply)) state->outcomes.add(replay->run, at, data_epoch);
    }
    done(std::move(reply));
  });
}

void Engine::extend(std::vector<ExtendRequest> requests, Done<std::vector<ExtendReply>> done) {
  forward_good<ExtendReply>(std::move(requests), std::move(done),
                            [this](auto good, auto then) { store_.extend(std::move(good), std::move(then)); });
}

void Engine::settle(std::vector<SettleRequest> requests, Done<std::vector<SettleReply>> done) {
  auto remember = [state = callbacks_, &store = store_, data_epoch = store_.data_epoch(),
                   done = std::move(done)](Result<std::vector<SettleReply>> replies) mutable {
    for (std::size_t i = 0; replies && i < replies->size(); ++i) {
      const auto* settled = std::get_if<Settled>(&(*replies)[i]);
      if (settled) state->progress.forget(settled->run.id());
      if (!settled || !settled->run.as<Completed>()) continue;
      state->outcomes.add(settled->run, store.now(), data_epoch);
      if (settled->changed) note_follow_ups(*state, *settled, store.now());
    }
    done(std::move(replies));
  };
  forward_good<SettleReply>(std::move(requests), Done<std::vector<SettleReply>>(std::move(remember)),
                            [this](auto good, auto then) { store_.settle(std::move(good), std::move(then)); });
}

void Engine::enqueue(std::vector<EnqueueRequest> requests, Done<std::vector<EnqueueReply>> done) {
  std::vector<std::string> callers;
  for (const EnqueueRequest& request : requests) callers.push_back(request.caller);
  auto count = [state = callbacks_, &store = store_, callers = std::move(callers),
                done = std::move(done)](Result<std::vector<EnqueueReply>> replies) mutable {
    for (std::size_t i = 0; replies && i < replies->size(); ++i) {
      const EnqueueReply& reply = (*replies)[i];
      if (const auto* enqueued = std::get_if<Enqueued>(&reply); enqueued && enqueued->duplicate)
        state->suppressions.note(enqueued->run.id(), kDuplicate, callers[i], store.now());
      if (const auto* mismatch = std::get_if<Mismatch>(&reply))
        state->suppressions.note(mismatch->existing, facts(Code::KEY_REUSED).name, callers[i], store.now());
    }
    done(std::move(replies));
  };
  forward_good<EnqueueReply>(std::move(requests), Done<std::vector<EnqueueReply>>(std::move(count)),
                             [this](auto good, auto then) { store_.enqueue(std::move(good), std::move(then)); });
}

void Engine::take(TakeRequest request, Done<std::vector<Taken>> done) {
  if (auto fault = find_fault(request)) return done(std::unexpected(std::move(*fault)));
  store_.take(std::move(request), std::move(done));
}

void Engine::move(MoveRequest request, Done<MoveReply> done) {
  if (auto fault = find_fault(request)) return done(std::unexpected(std::move(*fault)));
  store_.move(std::move(request), std::move(done));
}

Result<std::optional<KeyAnswer>> Engine::explain_key(const KeyName& name) {
  auto run = store_.find_latest(name);
  if (!run) return std::unexpected(run.error());
  if (!*run) return std::nullopt;
  auto written = store_.find_duplicates((*run)->id());
  if (!written) return std::unexpected(written.error());
  KeyAnswer answer{std::move(**run), written->value_or(Duplicates{})};
  merge_duplicates(answer.suppressed, callbacks_->suppressions.find(answer.run.id()));
  return answer;
}

}  // namespace latchkey
