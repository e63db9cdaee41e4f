#include "engine/suppressions.hpp"

#include <algorithm>
#include <utility>

namespace latchkey {
namespace {

void count(Duplicates& seen, std::string_view reason, Instant at) {
  for (DuplicateCount& known : seen.counts) {
    if (known.reason != reason) continue;
    known.count += 1;
    known.first = std::min(known.first, at);
    known.last = std::max(known.last, at);
    return;
  }
  seen.counts.push_back({std::string(reason), 1, at, at});
}

}  // namespace

std::optional<Suppressed> find_suppressed(const ClaimReply& reply) {
  if (const auto* busy = std::get_if<Busy>(&reply)) return Suppressed{busy->run.id(), facts(busy->code).name};
  if (const auto* not_due = std::get_if<NotDue>(&reply))
    return Suppressed{not_due->run.id(), facts(Code::NOT_DUE).name};
  if (const auto* doubted = std::get_if<InDoubtReply>(&reply))
    return Suppressed{doubted->run.id(), facts(Code::OUTCOME_UNKNOWN).name};
  if (const auto* replay = std::get_if<Replay>(&reply)) return Suppressed{replay->run.id(), kReplayed};
  if (const auto* mismatch = std::get_if<Mismatch>(&reply))
    return Suppressed{mismatch->existing, facts(Code::KEY_REUSED).name};
  return std::nullopt;
}

void Suppressions::note(RunId run, std::string_view reason, std::string_view caller, Instant at) {
  Shard& shard = shard_of(run);
  const std::lock_guard lock(shard.mutex);
  auto known = shard.seen.find(run);
  if (known == shard.seen.end()) {
    if (shard.seen.size() >= shard_runs_max_) {
      forgotten_.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    known = shard.seen.try_emplace(run).first;
  }
  Duplicates& seen = known->second;
  count(seen, reason, at);
  if (shard.seen.size() * 2 > shard_runs_max_) return;
  if (seen.latest.size() >= 2 * kLatestDuplicates)
    seen.latest.erase(seen.latest.begin(), seen.latest.end() - kLatestDuplicates);
  seen.latest.push_back({at, std::string(reason), std::string(caller)});
}

std::vector<DuplicateNote> Suppressions::drain() {
  std::vector<DuplicateNote> notes;
  for (Shard& shard : shards_) {
    std::unordered_map<RunId, Duplicates> seen;
    {
      const std::lock_guard lock(shard.mutex);
      seen.swap(shard.seen);
    }
    for (auto& [run, duplicates] : seen) {
      auto& latest = duplicates.latest;
      if (latest.size() > kLatestDuplicates) latest.erase(latest.begin(), latest.end() - kLatestDuplicates);
      notes.push_back({run, std::move(duplicates)});
    }
  }
  // Sorted, so that a seed repeats the simulation exactly.
  std::ranges::sort(notes, {}, &DuplicateNote::run);
  return notes;
}

void Suppressions::restore(std::vector<DuplicateNote> notes) {
  for (DuplicateNote& note : notes) {
    Shard& shard = shard_of(note.run);
    const std::lock_guard lock(shard.mutex);
    if (!shard.seen.contains(note.run) && shard.seen.size() >= shard_runs_max_) {
      for (const DuplicateCount& one : note.seen.counts) forgotten_.fetch_add(one.count, std::memory_order_relaxed);
      continue;
    }
    Duplicates& seen = shard.seen[note.run];
    Duplicates newer = std::exchange(seen, std::move(note.seen));
    merge_duplicates(seen, newer);
  }
}

Duplicates Suppressions::find(RunId run) const {
  const Shard& shard = shard_of(run);
  const std::lock_guard lock(shard.mutex);
  const auto known = shard.seen.find(run);
  return known == shard.seen.end() ? Duplicates{} : known->second;
}

}  // namespace latchkey
