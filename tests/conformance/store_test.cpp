#include "conformance/store_test.hpp"

namespace latchkey {

ClaimReply Verbs::claim(ClaimRequest request) {
  return await<ClaimReply>([&](auto done) { store_.claim(std::move(request), std::move(done)); });
}
ExtendReply Verbs::extend(ExtendRequest request) {
  return await<std::vector<ExtendReply>>([&](auto done) { store_.extend({request}, std::move(done)); }).at(0);
}
SettleReply Verbs::settle(SettleRequest request) { return settle_all({std::move(request)}).at(0); }
std::vector<SettleReply> Verbs::settle_all(std::vector<SettleRequest> requests) {
  return await<std::vector<SettleReply>>([&](auto done) { store_.settle(std::move(requests), std::move(done)); });
}
EnqueueReply Verbs::enqueue(EnqueueRequest request) { return enqueue_all({std::move(request)}).at(0); }
std::vector<EnqueueReply> Verbs::enqueue_all(std::vector<EnqueueRequest> requests) {
  return await<std::vector<EnqueueReply>>([&](auto done) { store_.enqueue(std::move(requests), std::move(done)); });
}
std::vector<Taken> Verbs::take(TakeRequest request) {
  return await<std::vector<Taken>>([&](auto done) { store_.take(std::move(request), std::move(done)); });
}
MoveReply Verbs::move(MoveRequest request) {
  return await<MoveReply>([&](auto done) { store_.move(std::move(request), std::move(done)); });
}
Swept Verbs::sweep(std::uint32_t limit) {
  return await<Swept>([&](auto done) { store_.sweep(limit, std::move(done)); });
}
Swept Verbs::purge(Retention retention, std::uint32_t limit) {
  return await<Swept>([&](auto done) { store_.purge(retention, limit, std::move(done)); });
}
void Verbs::note(DuplicateNote note) {
  await<std::monostate>([&](auto done) { store_.note_duplicates({std::move(note)}, std::move(done)); });
}

Won StoreTestBase::win(ClaimRequest request) { return std::get<Won>(verbs().claim(std::move(request))); }
Run StoreTestBase::add(EnqueueRequest request) { return std::get<Enqueued>(verbs().enqueue(std::move(request))).run; }
Taken StoreTestBase::take_one(std::string function) { return take_up_to(1, std::move(function)).at(0); }
std::vector<Taken> StoreTestBase::take_up_to(std::uint32_t limit, std::string function) {
  return verbs().take({.functions = {std::move(function)}, .limit = limit, .session = id_of(5)});
}
Settled StoreTestBase::end(const Won& owned, Ending ending) {
  return std::get<Settled>(verbs().settle({{}, owned.run.id(), owned.fence, std::move(ending)}));
}
Run StoreTestBase::find(RunId id) { return store().find({}, id).value().value(); }
Moved StoreTestBase::move(RunId id, Move wish) { return std::get<Moved>(verbs().move({{}, id, std::move(wish)})); }

std::optional<Run> StoreTestBase::reach(KeyState state) {
  ClaimRequest claim = a_claim();
  if (is_lock(state)) claim.guard = Guard::while_running;
  if (state == KeyState::lapsed_hold || state == KeyState::in_doubt) claim.on_doubt = OnDoubt::hold;
  switch (state) {
    case KeyState::absent:
      return std::nullopt;
    case KeyState::queued_job:
      return add(a_job());
    case KeyState::lapsed_job_rerun: {
      add(a_job());
      const Taken taken = take_one();
      advance(kDefaultLease);
      return find(taken.run.id());
    }
    case KeyState::failed_unknown_hold:
      claim.retry = kNoRetries;
      break;
    default:
      break;
  }
  const Won won = win(claim);
  switch (state) {
    case KeyState::cancelled:
      end(won, retryable());
      move(won.run.id(), CancelByHand{});
      break;
    case KeyState::window_over:
      end(won);
      advance(claim.window);
      break;
    case KeyState::while_running_completed:
    case KeyState::once_completed:
      end(won);
      break;
    case KeyState::while_running_failed:
    case KeyState::once_failed:
      end(won, permanent());
      break;
    case KeyState::queued_claim_due:
      end(won, retryable());
      advance(1s);
      break;
    case KeyState::queued_claim_not_due:
      end(won, retryable());
      advance(999ms);
      break;
    case KeyState::lapsed_claim_rerun:
    case KeyState::lapsed_hold:
      advance(claim.lease);
      break;
    case KeyState::in_doubt:
    case KeyState::failed_unknown_hold:
      advance(claim.lease);
      verbs().sweep();
      break;
    default:
      break;
  }
  return find(won.run.id());
}

Fail retryable(std::string message) { return {.message = std::move(message), .code = "E_TRY"}; }
Fail permanent(std::string message) { return {.message = std::move(message), .code = "E_NEVER", .retryable = false}; }
Fail outcome_unknown() { return {.message = "connection lost", .code = "E_LOST", .outcome_unknown = true}; }

}  // namespace latchkey
