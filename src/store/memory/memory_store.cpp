#include "store/memory/memory_store.hpp"

#include "store/apply.hpp"
#include "store/listing.hpp"
#include "store/memory/memory_catalog.hpp"

namespace latchkey {
namespace {

// One reply per request, in order.
template <class Reply, class Request>
std::vector<Reply> apply_each(Applying with, const std::vector<Request>& requests,
                              Reply (*one)(Applying, const Request&)) {
  std::vector<Reply> replies;
  replies.reserve(requests.size());
  for (const Request& request : requests) replies.push_back(one(with, request));
  return replies;
}

}  // namespace

template <class T, class Apply>
void MemoryStore::apply(Done<T> done, Apply apply) {
  std::unique_lock lock(mutex_);
  T reply = apply(Applying{tables_, random_, clock_.now()});
  lock.unlock();
  done(std::move(reply));
}

void MemoryStore::claim(ClaimRequest request, Done<ClaimReply> done) {
  apply(std::move(done), [&](Applying with) { return apply_claim(with, request); });
}
void MemoryStore::extend(std::vector<ExtendRequest> requests, Done<std::vector<ExtendReply>> done) {
  apply(std::move(done), [&](Applying with) { return apply_each(with, requests, apply_extend); });
}
void MemoryStore::settle(std::vector<SettleRequest> requests, Done<std::vector<SettleReply>> done) {
  apply(std::move(done), [&](Applying with) { return apply_each(with, requests, apply_settle); });
}
void MemoryStore::enqueue(std::vector<EnqueueRequest> requests, Done<std::vector<EnqueueReply>> done) {
  apply(std::move(done), [&](Applying with) { return apply_each(with, requests, apply_enqueue); });
}
void MemoryStore::take(TakeRequest request, Done<std::vector<Taken>> done) {
  apply(std::move(done), [&](Applying with) { return apply_take(with, request); });
}
void MemoryStore::move(MoveRequest request, Done<MoveReply> done) {
  apply(std::move(done), [&](Applying with) { return apply_move(with, request); });
}
void MemoryStore::sweep(std::uint32_t limit, Done<Swept> done) {
  apply(std::move(done), [&](Applying with) { return apply_sweep(with, limit); });
}
void MemoryStore::purge(Retention retention, std::uint32_t limit, Done<Swept> done) {
  apply(std::move(done), [&](Applying with) {
    Swept swept = apply_purge(with, retention, limit);
    swept.more |= purge_audit(tables_, oldest_audit(retention, with.now), limit);
    return swept;
  });
}
void MemoryStore::note_duplicates(std::vector<DuplicateNote> notes, Done<std::monostate> done) {
  apply(std::move(done), [&](Applying) {
    for (const DuplicateNote& note : notes) tables_.add_duplicates(note);
    return std::monostate{};
  });
}

Result<std::optional<Run>> MemoryStore::find(const std::optional<std::string>& tenant, RunId id) {
  const std::lock_guard lock(mutex_);
  auto run = tables_.find(id);
  if (run && tenant && run->head->tenant != *tenant) run.reset();
  return run;
}

Result<std::optional<Run>> MemoryStore::find_latest(const KeyName& name) {
  const std::lock_guard lock(mutex_);
  return tables_.find_latest(name);
}

Result<Page> MemoryStore::list(const ListQuery& query) {
  if (!is_cursor(query.cursor)) return std::unexpected(bad_cursor());
  const std::lock_guard lock(mutex_);
  return tables_.list(query);
}

Result<std::optional<Duplicates>> MemoryStore::find_duplicates(RunId id) {
  const std::lock_guard lock(mutex_);
  return tables_.find_duplicates(id);
}

Result<StoreStats> MemoryStore::stats() {
  const std::lock_guard lock(mutex_);
  return tables_.stats();
}

std::optional<Instant> MemoryStore::next_deadline() {
  const std::lock_guard lock(mutex_);
  return tables_.next_deadline();
}

}  // namespace latchkey
