// PgTables: runs that are due: jobs that may be taken, expired leases, runs and batch ids that may be purged.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "base/seeded_bug.hpp"
#include "store/postgres/pg_tables.hpp"
#include "store/postgres/statements.hpp"

namespace latchkey::pg {

void PgTables::load_ready(const ReadyFilter& filter, ReadyList list) {
  std::ranges::sort(list.items, [](const ReadyItem& a, const ReadyItem& b) {
    return std::tie(b.priority, a.due_at, a.lo) < std::tie(a.priority, b.due_at, b.lo);
  });
  ready_[filter] = std::move(list);
}

std::vector<RunId> PgTables::ready(const TakeRequest& request, Instant now) {
  end_command();  // throws if rows are missing: the set of deferred runs is not complete yet
  const ReadyFilter filter{request.tenant, request.functions};
  const auto list = ready_.find(filter);
  if (list == ready_.end()) {
    read_set_.ready[filter].count += request.limit;
    throw NeedsRead{};
  }
  const auto& [items, are_all, exclude_past_retry_deadline] = list->second;
  // Another take of this batch may have taken it.
  const auto may_be_ready = [&](Seq seq) {
    const auto known = runs_.find(seq);
    if (known == runs_.end()) return true;
    const auto& run = known->second.now;
    const auto* queued = run ? run->as<Queued>() : nullptr;
    return queued && run->waiting_for == 0 && queued->due_at <= now;
  };
  std::vector<Seq> found;
  bool has_deferred = false;
  for (const ReadyItem& item : items)
    for (Seq seq = item.lo; seq <= item.hi && found.size() < request.limit; ++seq) {
      if (!may_be_ready(seq)) continue;
      if (deferred_.contains(seq)) {
        has_deferred = true;
      } else {
        found.push_back(seq);
      }
    }
  // More jobs may be ready behind the deferred ones.
  const bool may_be_more = !are_all || (has_deferred && !exclude_past_retry_deadline);
  if (found.size() < request.limit && may_be_more) {
    ReadyRequest& more = read_set_.ready[filter];
    more.count += request.limit;
    more.is_second_round = true;
    more.exclude_past_retry_deadline |= has_deferred;
    throw NeedsRead{};
  }
  need_all(found);
  std::vector<RunId> ids;
  for (const Seq seq : found)
    if (const auto& run = slot_of(seq).now; run && may_be_ready(seq)) ids.push_back(run->id());
  return ids;
}

std::vector<RunId> PgTables::overdue(Instant now, std::uint32_t limit) {
  if (!overdue_) {
    read_set_.overdue = std::max(read_set_.overdue, limit);
    throw NeedsRead{};
  }
  std::vector<Seq> found;
  for (const ReadyItem& item : *overdue_)
    for (Seq seq = item.lo; seq <= item.hi && found.size() < limit; ++seq) {
      if (skipped_overdue_.contains(seq) || contended_.contains(seq)) continue;
      const auto known = runs_.find(seq);
      if (known == runs_.end() || (known->second.now && known->second.now->is_open())) found.push_back(seq);
    }
  need_all(found);
  std::vector<RunId> ids;
  for (const Seq seq : found) {
    const auto& run = slot_of(seq).now;
    const auto deadline = run ? next_deadline(*run) : std::nullopt;
    if (deadline && *deadline <= now) ids.push_back(run->id());
  }
  return ids;
}

// Missing rows of one run do not end the loop: after all runs were tried, the missing rows are read together.
bool PgTables::try_isolated(RunId run, const std::function<void()>& act) {
  const std::size_t steps = undo_.size(), runs = undo_runs_.size();
  try {
    act();
  } catch (const NeedsRead&) {
    undo_to(steps, runs);
    request_another_round();
    return false;
  } catch (const LockContended&) {
    if (!LK_SEEDED(contended_run_half_swept)) undo_to(steps, runs);
    deferred_.insert(seq_in(run));
    return false;
  }
  deferred_.erase(seq_in(run));
  return true;
}

PgTables::DeferredRuns PgTables::deferred() const {
  DeferredRuns deferred{.runs = deferred_, .blocks = {}};
  for (auto at = deferred_.begin(); at != deferred_.end();) {
    const Block* block = find_block(*at);
    if (!block) {
      ++at;
      continue;
    }
    const auto end = deferred_.upper_bound(block->hi);
    if (std::distance(deferred_.lower_bound(block->lo), end) == block->hi - block->lo + 1)
      deferred.blocks.emplace_back(block->lo, block->hi);
    at = end;
  }
  return deferred;
}

void PgTables::find_dead_letters_of(const std::vector<Seq>& locked, Seq from, Seq to) {
  const std::string name = "dead letters of:" + std::to_string(from) + "/" + std::to_string(to);
  const auto statement = [&] { return Statement{sql().dead_letters_of_runs, Params().add(from).add(to)}; };
  bool all = true;
  for (const Seq seq : locked) {
    const RunSlot* slot = find_slot(seq);
    const bool is_peeked = slot && slot->stored == StoredIn::peeked;
    if (is_peeked) read_set_.runs.insert(seq);
    all &= slot && !is_peeked;
  }
  if (!all) {
    read_set_.queries.emplace_back(name, statement());
    throw NeedsRead{};
  }
  const Rows& rows = query(name, statement);
  dead_letters_of_.clear();
  for (int row = 0; row < rows.size(); ++row) {
    DeadLettersOf& dead_letters = dead_letters_of_[rows.integer(row, 0)];
    dead_letters.numbers.insert(rows.integer(row, 1));
    dead_letters.is_unread |= rows.boolean(row, 2);
  }
}

namespace {

// Batch ids erased in one transaction. The other commands of the batch wait for it.
constexpr int kOldBatchesMax = 2000;
constexpr const char* kOldBatches = "old batches";

Statement find_old_batches(Instant before) {
  static const std::string text =
      fmt::format("{} LIMIT {} FOR UPDATE SKIP LOCKED", sql().find_old_batches, kOldBatchesMax);
  return {text, Params().add(to_ms(before))};
}

}  // namespace

void plan_old_batches(ReadSet& read_set, Instant before) {
  read_set.queries.emplace_back(kOldBatches, find_old_batches(before));
}

bool PgTables::erase_old_batches(Instant before) {
  const Rows& rows = query(kOldBatches, [&] { return find_old_batches(before); });
  if (rows.empty()) return false;
  Column ids{Type::uuid};
  for (int row = 0; row < rows.size(); ++row) ids.add(rows.uuid(row, 0));
  write({sql().erase_batches, Params().add(ids)});
  return rows.size() == kOldBatchesMax;
}

// The position is a sequence, so it advances even if the transaction rolls back. The slice is then purged in the next
// pass over the table.
PurgeSlice PgTables::purge_candidates(Instant made_by, std::uint32_t limit) {
  const Rows& rows = query("purge:" + std::to_string(limit),
                           [&] { return Statement{sql().purge_candidates, Params().add(std::int64_t{limit})}; });
  // Rows come in the order of their counters, which is nearly that of time: a slice without old runs is the last.
  std::vector<Seq> found;
  for (int row = 0; row < rows.size(); ++row)
    if (rows.integer(row, 1) <= to_ms(made_by)) found.push_back(rows.integer(row, 0));
  const bool is_end = rows.size() < static_cast<int>(limit) || found.empty();
  if (!found.empty()) {
    const Seq from = found.front(), to = found.back();
    std::erase_if(found, [&](Seq seq) { return contended_.contains(seq); });  // left for the next pass
    find_dead_letters_of(found, from, to);
  }
  PurgeSlice slice;
  slice.more = limit > 0 && !is_end;
  for (const Seq seq : found) {
    const auto& run = slot_of(seq).now;
    if (run && run->is_settled()) slice.runs.push_back(*run);
  }
  write({sql().mark_purged, Params().add(slice.more ? rows.integer(rows.size() - 1, 0) : 0)});
  return slice;
}

}  // namespace latchkey::pg
