#include "engine/outcome_cache.hpp"

#include <cstring>

#include "base/seeded_bug.hpp"

namespace latchkey {
namespace {

std::size_t size_of(const Run& run) {
  const RunHead& head = *run.head;
  return sizeof(Run) + sizeof(RunHead) + 128 + head.tenant.size() + head.function.size() + head.key.size() +
         head.input.size() + head.caller.size() + run.as<Completed>()->result.size();
}

bool is_same_key(const RunHead& head, const ClaimRequest& request) {
  return head.key == request.key && head.tenant == request.tenant && head.function == request.function;
}

}  // namespace

std::size_t OutcomeCache::HashOfHash::operator()(const Digest& hash) const noexcept {
  std::size_t value;
  std::memcpy(&value, hash.data() + 8, sizeof value);
  return value;
}

bool OutcomeCache::Shard::enter(std::uint64_t now_is) {
  if (now_is > data_epoch) {
    entries.clear();
    by_key.clear();
    bytes = 0;
    data_epoch = now_is;
  }
  return now_is == data_epoch;
}

void OutcomeCache::Shard::erase(std::list<Entry>::iterator at) {
  bytes -= at->bytes;
  by_key.erase(at->run->head->key_hash);
  entries.erase(at);
}

void OutcomeCache::Shard::make_room(std::size_t bytes_max) {
  while (bytes > bytes_max) {
    if (entries.front().is_recent) {
      entries.front().is_recent = false;
      entries.splice(entries.end(), entries, entries.begin());
    } else {
      erase(entries.begin());
    }
  }
}

void OutcomeCache::add(const Run& run, Instant now, std::uint64_t data_epoch) {
  // No caller can claim a run that Latchkey itself created; the store has its own reply for those.
  if (!run.head->guarded() || run.head->made_by != MadeBy::caller || !run.in_window(now)) return;
  const std::size_t bytes = size_of(run);
  if (bytes > shard_bytes_max_ / 4) return;
  auto cached = std::make_shared<const Run>(run);
  Shard& shard = shard_of(run.head->key_hash);
  const std::lock_guard lock(shard.mutex);
  if (!shard.enter(data_epoch)) return;
  if (const auto known = shard.by_key.find(run.head->key_hash); known != shard.by_key.end()) {
    if (known->second->run->id() == run.id()) return;
    shard.erase(known->second);
  }
  shard.entries.push_back({std::move(cached), bytes});
  shard.by_key.emplace(run.head->key_hash, std::prev(shard.entries.end()));
  shard.bytes += bytes;
  shard.make_room(shard_bytes_max_);
}

std::shared_ptr<const Run> OutcomeCache::look_up(const ClaimRequest& request, Instant now, std::uint64_t data_epoch) {
  Shard& shard = shard_of(request.key_hash);
  const std::lock_guard lock(shard.mutex);
  if (!shard.enter(data_epoch)) return nullptr;
  const auto known = shard.by_key.find(request.key_hash);
  if (known == shard.by_key.end() || !is_same_key(*known->second->run->head, request)) return nullptr;
  if (!known->second->run->in_window(now) && !LK_SEEDED(cached_replay_past_window)) {
    shard.erase(known->second);
    return nullptr;
  }
  known->second->is_recent = true;
  return known->second->run;
}

std::optional<ClaimReply> OutcomeCache::find(const ClaimRequest& request, Instant now, std::uint64_t data_epoch) {
  if (request.key.empty() || request.guard == Guard::none) return std::nullopt;
  const auto run = look_up(request, now, data_epoch);
  if (!run) return std::nullopt;
  const auto& known = run->head->fingerprint;
  const bool other = known && request.fingerprint && *known != *request.fingerprint;
  if (other && !LK_SEEDED(cached_replay_any_fingerprint)) return Mismatch{run->id()};
  return Replay{*run};
}

std::size_t OutcomeCache::bytes() const {
  std::size_t sum = 0;
  for (const Shard& shard : shards_) {
    const std::lock_guard lock(shard.mutex);
    sum += shard.bytes;
  }
  return sum;
}

}  // namespace latchkey
