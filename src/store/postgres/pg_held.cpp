// What somebody's open transaction holds up, known by itself: what wants it goes apart, and nothing else waits with it.
#include <algorithm>

#include "store/postgres/letter_columns.hpp"
#include "store/postgres/pg_store.hpp"
#include "store/postgres/statements.hpp"

namespace latchkey {

using namespace pg;

// --- keys that somebody is inserting --------------------------------------------------------------------------------

// As a whole: one that goes in parts leaves out what is held by itself.
bool PostgresStore::is_held(PgCommand& command) const {
  if (held_.empty() || command.manner == PgCommand::Manner::in_parts) return false;
  if (!command.keys) {
    Needs needs;
    command.plan(needs);
    needs.keys.insert(needs.new_keys);
    command.keys = needs.keys.sorted();
  }
  return std::ranges::any_of(*command.keys, [&](const Uuid& key) { return held_.contains(key); });
}

// Looks which of these are held: what wants one of them goes apart at once, and nothing else waits with it.
Task<bool> PostgresStore::find_held(Connection& connection, std::vector<TenantKey> keys, Duration most) {
  if (keys.empty()) co_return false;
  Column hashes{Type::uuid};
  for (const auto& [key, tenant] : keys) hashes.add(key);
  begin(connection);
  connection.add({sql().are_held, Params().add(hashes).add(most.count())});
  connection.add(sql().rollback);
  const auto results = co_await connection.run(settings_.reply_max);
  const Rows& seen = results[results.size() - 2];
  bool are_any = false;
  for (int row = 0; row < seen.size(); ++row) {
    held_.note(keys.at(static_cast<std::size_t>(row)), seen.boolean(row, 0), host_.elapsed());
    are_any |= seen.boolean(row, 0);
  }
  if (are_any) slow_wake_.ring();
  co_return are_any;
}

Task<void> PostgresStore::look_at_held(std::unique_ptr<Connection>& connection) {
  held_.tidy(host_.elapsed());
  std::map<LetterName, DeadLetter> letters;
  if (host_.elapsed() >= letters_seen_ + kLettersEvery) letters = held_letters_;
  if (held_.empty() && letters.empty()) co_return;
  try {
    if (!connection || connection->is_lost()) connection = co_await connect();
    co_await find_held(*connection, held_.next_held(kLooksMost), kLookAtHeld);
    co_await find_held(*connection, held_.next_unseen(kLooksMost), kLookAtUnseen);
    if (!letters.empty()) co_await find_held_letters(*connection, std::move(letters));
  } catch (const Failure&) {
    connection.reset();
  }
}

// --- runs that somebody has -----------------------------------------------------------------------------------------

// Those that are known to be held are passed over, or all that is in the batch would wait each time: what wants one
// goes apart. There each is waited for now and then, in turn with everybody else: what many have, one after the other,
// may be free at no moment at which it is merely looked at. One at a time: behind one that is held for long the next is
// not come to.
std::vector<Seq> PostgresStore::avoid_held_runs(Needs& needs, const Attempt& attempt) {
  const Duration now = host_.elapsed();
  if (now >= held_runs_tidied_ + kTidyEvery) {
    held_runs_tidied_ = now;
    std::erase_if(held_runs_, [now](const auto& one) { return one.second.until <= now; });
  }
  if (held_runs_.empty()) return attempt.skips ? needs.runs.sorted() : std::vector<Seq>{};
  const std::vector<Seq> wanted = needs.runs.sorted();
  needs.runs = {};
  auto next = held_runs_.end();
  for (const Seq seq : wanted) {
    const auto held = held_runs_.find(seq);
    const bool is_held = held != held_runs_.end() && held->second.until > now;
    (is_held ? needs.held : needs.runs).insert(seq);
    const bool may_wait = is_held && attempt.pace == Pace::slow && now - held->second.waited >= kWaitEvery;
    if (may_wait && (next == held_runs_.end() || held->second.waited < next->second.waited)) next = held;
  }
  if (next == held_runs_.end()) return wanted;
  next->second.waited = now;
  Wanted<Seq> others;
  for (const Seq seq : needs.held.sorted()) (seq == next->first ? needs.runs : others).insert(seq);
  needs.held = std::move(others);
  return wanted;
}

// What became of those that were wanted.
void PostgresStore::note_held_runs(const PgTables& tables, const std::vector<Seq>& wanted) {
  const Duration now = host_.elapsed();
  for (const Seq seq : wanted) {
    if (tables.is_held(seq)) {
      held_runs_.try_emplace(seq, HeldRun{.until = {}, .waited = now}).first->second.until = now + kHeldFor;
    } else {
      held_runs_.erase(seq);
    }
  }
}

// --- dead letters that somebody is making ---------------------------------------------------------------------------

// Looks which of these are held, by making each and undoing that. Whether there are any.
Task<bool> PostgresStore::find_held_letters(Connection& connection, std::map<LetterName, DeadLetter> letters) {
  bool are_any = false;
  for (auto& [name, letter] : letters) {
    if (co_await is_being_made(connection, letter)) {
      held_letters_.insert_or_assign(name, std::move(letter));
      are_any = true;
    } else {
      held_letters_.erase(name);
    }
  }
  letters_seen_ = host_.elapsed();
  if (are_any) slow_wake_.ring();
  co_return are_any;
}

Task<bool> PostgresStore::is_being_made(Connection& connection, const DeadLetter& letter) {
  begin(connection);
  connection.add(sql().wait_hardly);
  connection.add(insert_letter(letter));
  std::optional<Failure> failure;
  try {
    co_await connection.run(settings_.reply_max);
  } catch (const Failure& found) {
    failure.emplace(found);
  }
  if (failure && failure->lost) throw *failure;
  connection.add(sql().rollback);
  co_await connection.run(settings_.reply_max);
  co_return failure && failure->state == "55P03";
}

// --- overdue runs that need something of that -----------------------------------------------------------------------

// They stay the first that are due: for a while they are not looked at, or the others would never have their turn.
void PostgresStore::leave_out(const PgTables::LeftOut& out) {
  const Duration until = host_.elapsed() + kLeftOutFor;
  for (const Seq seq : out.runs) left_out_.insert_or_assign(seq, until);
  for (const auto& block : out.blocks) left_out_blocks_.insert_or_assign(block, until);
}

PgTables::LeftOut PostgresStore::find_left_out() {
  const auto is_over = [now = host_.elapsed()](const auto& one) { return one.second <= now; };
  std::erase_if(left_out_, is_over);
  std::erase_if(left_out_blocks_, is_over);
  PgTables::LeftOut out;
  for (const auto& [seq, until] : left_out_) out.runs.insert(seq);
  for (const auto& [block, until] : left_out_blocks_) out.blocks.push_back(block);
  return out;
}

}  // namespace latchkey
