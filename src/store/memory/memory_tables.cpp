#include "store/memory/memory_tables.hpp"

#include <charconv>

#include "base/assert.hpp"
#include "store/listing.hpp"

namespace latchkey {

std::optional<Run> MemoryTables::find(RunId id) {
  const auto at = runs_.find(uuid_counter(id));
  if (at == runs_.end() || at->second.id() != id) return std::nullopt;
  return at->second;
}

std::optional<Run> MemoryTables::find_latest(const KeyName& name) {
  const auto at = keys_.find(name.hash);
  if (at == keys_.end()) return std::nullopt;
  auto run = find(at->second);
  LK_ASSERT(run && (run->head->by_call || run->head->key == name.key) && run->head->tenant == name.tenant &&
            run->head->function == name.function);
  return run;
}

RunId MemoryTables::next_id(Instant now) { return make_uuid_v7(now, ++counter_, random_.next()); }

void MemoryTables::insert(const Run& run) {
  runs_.emplace(uuid_counter(run.id()), run);
  if (run.head->guarded()) keys_[run.head->key_hash] = run.id();
  ready_index_.add(run);
}

void MemoryTables::update(const Run& before, const Run& after) {
  ready_index_.remove(before);
  runs_.at(uuid_counter(after.id())) = after;
  ready_index_.add(after);
}

void MemoryTables::set_latest_run_of_key(const Run& run) { keys_[run.head->key_hash] = run.id(); }

void MemoryTables::erase(const Run& run) {
  if (const auto key = keys_.find(run.head->key_hash); key != keys_.end() && key->second == run.id()) keys_.erase(key);
  duplicates_.erase(run.id());
  runs_.erase(uuid_counter(run.id()));
}

PurgeSlice MemoryTables::purge_candidates(Instant made_by, std::uint32_t limit) {
  PurgeSlice slice;
  std::uint32_t seen = 0;
  auto at = runs_.upper_bound(purged_to_);
  for (; at != runs_.end() && at->second.head->created_at <= made_by && seen < limit; ++at, ++seen) {
    purged_to_ = at->first;
    if (at->second.is_settled()) slice.runs.push_back(at->second);
  }
  slice.more = limit > 0 && seen == limit;
  if (!slice.more) purged_to_ = 0;
  return slice;
}

void MemoryTables::remove_wait(RunId predecessor, RunId dependent) {
  const auto waiting = waits_.find(predecessor);
  if (waiting == waits_.end()) return;
  waiting->second.erase(dependent);
  if (waiting->second.empty()) waits_.erase(waiting);
}

void MemoryTables::remove_waits_of(RunId dependent) {
  for (auto waiting = waits_.begin(); waiting != waits_.end();) {
    waiting->second.erase(dependent);
    waiting = waiting->second.empty() ? waits_.erase(waiting) : std::next(waiting);
  }
}

std::vector<RunId> MemoryTables::dependents(RunId predecessor) {
  const auto waiting = waits_.find(predecessor);
  if (waiting == waits_.end()) return {};
  return {waiting->second.begin(), waiting->second.end()};
}

void MemoryTables::add_duplicates(const DuplicateNote& note) {
  if (find(note.run)) merge_duplicates(duplicates_[note.run], note.seen);
}

std::optional<Duplicates> MemoryTables::find_duplicates(RunId id) const {
  const auto at = duplicates_.find(id);
  if (at == duplicates_.end()) return std::nullopt;
  return at->second;
}

Page MemoryTables::list(const ListQuery& query) const {
  Page page;
  if (query.limit == 0) return page;
  const std::uint64_t before = read_cursor(query.cursor);
  std::size_t bytes = 0;
  for (auto at = std::make_reverse_iterator(runs_.lower_bound(before)); at != runs_.rend(); ++at) {
    if (!is_listed(at->second, query)) continue;
    if (is_full(page, bytes, query)) {
      page.next = write_cursor(uuid_counter(page.runs.back().id()));
      break;
    }
    page.runs.push_back(query.with_payloads ? at->second : without_payloads(at->second));
    bytes += payload_bytes(page.runs.back());
  }
  return page;
}

}  // namespace latchkey
