// What time brings: jobs that may be taken, leases that are over, runs that may be purged.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "base/seeded_bug.hpp"
#include "store/postgres/pg_tables.hpp"
#include "store/postgres/statements.hpp"

namespace latchkey::pg {

void PgTables::load_ready(const ReadyName& name, ReadyList list) {
  std::ranges::sort(list.items, [](const ReadyItem& a, const ReadyItem& b) {
    return std::tie(b.priority, a.due_at, a.lo) < std::tie(a.priority, b.due_at, b.lo);
  });
  ready_[name] = std::move(list);
}

std::vector<RunId> PgTables::ready(const TakeRequest& request, Instant now) {
  end_command();  // what is left out is not known yet
  const ReadyName name{request.tenant, request.functions};
  const auto list = ready_.find(name);
  if (list == ready_.end()) {
    needs_.ready[name].count += request.limit;
    throw NeedsRead{};
  }
  const auto& [items, are_all, exclude_past_retry_deadline] = list->second;
  // Another take of this batch may have had it.
  const auto may_be_ready = [&](Seq seq) {
    const auto known = runs_.find(seq);
    if (known == runs_.end()) return true;
    const auto& run = known->second.now;
    const auto* queued = run ? run->as<Queued>() : nullptr;
    return queued && run->waiting_for == 0 && queued->due_at <= now;
  };
  std::vector<Seq> found;
  bool leaves_out = false;
  for (const ReadyItem& item : items)
    for (Seq seq = item.lo; seq <= item.hi && found.size() < request.limit; ++seq) {
      if (!may_be_ready(seq)) continue;
      if (deferred_.contains(seq)) {
        leaves_out = true;
      } else {
        found.push_back(seq);
      }
    }
  // However many are left out, others may wait behind them.
  const bool may_be_more = !are_all || (leaves_out && !exclude_past_retry_deadline);
  if (found.size() < request.limit && may_be_more) {
    ReadyWish& wish = needs_.ready[name];
    wish.count += request.limit;
    wish.is_second = true;
    wish.exclude_past_retry_deadline |= leaves_out;
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
    needs_.overdue = std::max(needs_.overdue, limit);
    throw NeedsRead{};
  }
  std::vector<Seq> found;
  for (const ReadyItem& item : *overdue_)
    for (Seq seq = item.lo; seq <= item.hi && found.size() < limit; ++seq) {
      if (passed_over_.contains(seq) || busy_.contains(seq)) continue;
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

// What one lacks is asked for together with what the others lack, when all have been tried.
bool PgTables::try_isolated(RunId run, const std::function<void()>& act) {
  const std::size_t steps = undo_.size(), runs = undo_runs_.size();
  try {
    act();
  } catch (const NeedsRead&) {
    undo_to(steps, runs);
    request_another_round();
    return false;
  } catch (const LockContended&) {
    if (!LK_SEEDED(left_out_half_done)) undo_to(steps, runs);
    deferred_.insert(seq_in(run));
    return false;
  }
  deferred_.erase(seq_in(run));
  return true;
}

PgTables::DeferredRuns PgTables::left_out() const {
  DeferredRuns out{.runs = deferred_, .blocks = {}};
  for (auto at = deferred_.begin(); at != deferred_.end();) {
    const Block* block = find_block(*at);
    if (!block) {
      ++at;
      continue;
    }
    const auto end = deferred_.upper_bound(block->hi);
    if (std::distance(deferred_.lower_bound(block->lo), end) == block->hi - block->lo + 1)
      out.blocks.emplace_back(block->lo, block->hi);
    at = end;
  }
  return out;
}

void PgTables::find_letters_of(const std::vector<Seq>& locked, Seq from, Seq to) {
  const std::string name = "letters of:" + std::to_string(from) + "/" + std::to_string(to);
  const auto question = [&] { return Statement{sql().letters_of_runs, Params().add(from).add(to)}; };
  bool all = true;
  for (const Seq seq : locked) {
    const RunSlot* slot = find_slot(seq);
    const bool is_peeked = slot && slot->stored == Place::peeked;
    if (is_peeked) needs_.runs.insert(seq);
    all &= slot && !is_peeked;
  }
  if (!all) {
    needs_.questions.emplace_back(name, question());
    throw NeedsRead{};
  }
  const Rows& rows = ask(name, question);
  letters_of_.clear();
  for (int row = 0; row < rows.size(); ++row) {
    LettersOf& of = letters_of_[rows.integer(row, 0)];
    of.numbers.insert(rows.integer(row, 1));
    of.is_unread |= rows.boolean(row, 2);
  }
}

namespace {

// So many in one transaction, however many there are: whoever shares it waits for them.
constexpr int kNamesAtOnce = 2000;
constexpr const char* kOldNames = "old names";

Statement find_old_names(Instant before) {
  static const std::string text = fmt::format("{} LIMIT {} FOR UPDATE SKIP LOCKED", sql().find_old_names, kNamesAtOnce);
  return {text, Params().add(to_ms(before))};
}

}  // namespace

void plan_old_names(ReadSet& needs, Instant before) { needs.questions.emplace_back(kOldNames, find_old_names(before)); }

bool PgTables::erase_old_names(Instant before) {
  const Rows& rows = ask(kOldNames, [&] { return find_old_names(before); });
  if (rows.empty()) return false;
  Column names{Type::uuid};
  for (int row = 0; row < rows.size(); ++row) names.add(rows.uuid(row, 0));
  write({sql().erase_names, Params().add(names)});
  return rows.size() == kNamesAtOnce;
}

// The mark is a sequence: it is kept even when the slice is not, which only means that these are looked at later.
PurgeSlice PgTables::purge_candidates(Instant made_by, std::uint32_t limit) {
  const Rows& rows = ask("purge:" + std::to_string(limit),
                         [&] { return Statement{sql().purge_candidates, Params().add(std::int64_t{limit})}; });
  // In the order of their counters, which is nearly that of time: a whole slice of younger ones is the end.
  std::vector<Seq> found;
  for (int row = 0; row < rows.size(); ++row)
    if (rows.integer(row, 1) <= to_ms(made_by)) found.push_back(rows.integer(row, 0));
  const bool is_end = rows.size() < static_cast<int>(limit) || found.empty();
  if (!found.empty()) {
    const Seq from = found.front(), to = found.back();
    std::erase_if(found, [&](Seq seq) { return busy_.contains(seq); });  // the next round's
    find_letters_of(found, from, to);
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
