// Dead letters of a batch, and tokens. The open entry is kept with the batch: many runs may fail into it at once. All
// else is asked.
#include "base/hex.hpp"
#include "base/sha256.hpp"
#include "store/listing.hpp"
#include "store/packing.hpp"
#include "store/postgres/letter_columns.hpp"
#include "store/postgres/pg_tables.hpp"
#include "store/postgres/statements.hpp"

namespace latchkey::pg {
namespace {

std::string name_of(std::string_view what, const Uuid& id, std::string_view more = "") {
  return std::string(what) + ":" + to_string(id) + ":" + std::string(more);
}

}  // namespace

Uuid PgTables::add_dead_letter(const Run& run) {
  const LetterName name{run.head->tenant, run.head->function};
  if (busy_letters_.contains(name)) throw LockContended{};
  const auto at = letters_.find(name);
  if (at == letters_.end()) {
    needs_.letters.insert(name);
    throw NeedsRead{};
  }
  const DeadLetterMember member = describe_member(run);
  DeadLetter letter = at->second.now ? *at->second.now : open_entry(next_id(member.at), run);
  add_to_entry(letter, member);
  remember(letters_, name);
  auto& slot = letters_[name];
  slot.now = letter;
  slot.is_changed = true;
  write(put_member(member, letter.id, run.head->tenant));
  return letter.id;
}

// Of a run of the slice that is purged.
bool PgTables::has_unread_dead_letter(RunId run) {
  const auto of = letters_of_.find(seq_in(run));
  return of != letters_of_.end() && of->second.is_unread;
}

std::optional<Uuid> PgTables::dead_letter_of(const Run& run) {
  if (!run.as<Failed>()) return std::nullopt;
  const Rows& rows = ask(name_of("letter_of", run.id(), std::to_string(run.generation)), [&] {
    return Statement{sql().letter_of, Params().add(seq_in(run.id())).add(std::int64_t{run.generation})};
  });
  return rows.empty() ? std::nullopt : std::optional(rows.uuid(0, 0));
}

std::optional<DeadLetter> PgTables::find_dead_letter(const std::optional<std::string>& tenant, Uuid id) {
  const Rows& rows = query_for_update(name_of("letter", id, tenant.value_or("")), [&] {
    return Statement{sql().find_letter, Params().add(seq_in(id)).add(id).add_or_null(tenant)};
  });
  return rows.empty() ? std::nullopt : std::optional(read_letter(rows, 0));
}

std::optional<DeadLetter> PgTables::acknowledge(const std::optional<std::string>& tenant, Uuid id,
                                                const std::string& actor, Instant now) {
  auto letter = find_dead_letter(tenant, id);
  if (!letter || letter->acknowledged_at) return letter;
  letter->acknowledged_at = now;
  letter->acknowledged_by = actor;
  // What fails later in this batch must not go into it any more, nor open it again: the open one is read anew. What
  // failed earlier was written before the letter was read.
  const LetterName name{letter->tenant, letter->function};
  remember(letters_, name);
  letters_.erase(name);
  written_letters_.push_back(name);
  undo_.emplace_back([this] { written_letters_.pop_back(); });
  write({sql().acknowledge_letter, Params().add(seq_in(id)).add(id).add(to_ms(now)).add(std::string_view(actor))});
  return letter;
}

std::vector<DeadLetterMember> PgTables::list_members(Uuid dead_letter, MemberPlace after, std::uint32_t limit) {
  const Rows& rows = ask(name_of("members", dead_letter, write_place(after) + "/" + std::to_string(limit)), [&] {
    return Statement{sql().members_of_letter, Params()
                                                  .add(seq_in(dead_letter))
                                                  .add(static_cast<std::int64_t>(after.counter))
                                                  .add(std::int64_t{after.generation})
                                                  .add(std::int64_t{limit})};
  });
  std::vector<DeadLetterMember> members;
  for (int row = 0; row < rows.size(); ++row) members.push_back(read_member(rows, row));
  return members;
}

std::optional<DeadLetterMember> PgTables::find_member(Uuid dead_letter, RunId run) {
  const Rows& rows = ask(name_of("member", dead_letter, to_string(run)), [&] {
    return Statement{sql().find_member, Params().add(seq_in(dead_letter)).add(seq_in(run)).add(run)};
  });
  return rows.empty() ? std::nullopt : std::optional(read_member(rows, 0));
}

bool PgTables::add_step(const DeadLetterMember& member, const MemberStep& step) {
  const auto kind = static_cast<std::int64_t>(step.kind);
  const std::string name = name_of("step", member.run, std::to_string(member.generation) + "/" + std::to_string(kind));
  if (!ask(name, [&] {
         return Statement{sql().has_step,
                          Params().add(seq_in(member.run)).add(std::int64_t{member.generation}).add(kind)};
       }).empty())
    return false;
  write({sql().add_step, Params()
                             .add(seq_in(member.run))
                             .add(std::int64_t{member.generation})
                             .add(kind)
                             .add(std::string_view(step.by))
                             .add(to_ms(step.at))
                             .add_bytes(step.note)});
  return true;
}

void PgTables::erase_members(RunId run) {
  const auto of = letters_of_.find(seq_in(run));
  if (of == letters_of_.end()) return;
  remember(erased_members_, seq_in(run));
  erased_members_[seq_in(run)] = of->second.numbers;
}

bool PgTables::add_token(const TokenRecord& token) {
  if (!ask("token:" + token.id, [&] {
         return Statement{sql().has_token, Params().add(std::string_view(token.id))};
       }).empty())
    return false;
  write(insert_token(token));
  return true;
}

bool PgTables::revoke_token(const std::string& id, Instant now) {
  const Rows& rows = query_for_update(
      "revoke:" + id, [&] { return Statement{sql().when_revoked, Params().add(std::string_view(id))}; });
  if (rows.empty()) return false;
  if (rows.is_null(0, 0)) write({sql().revoke_token, Params().add(std::string_view(id)).add(to_ms(now))});
  return true;
}

// The heads are held, not the runs: nobody but a purge and others who count ever does that, and not for long. Whoever
// owns a run, in however long a transaction, is not in the way.
void PgTables::add_all_duplicates(std::span<const DuplicateNote> notes) {
  Column seqs{Type::int8};
  Sha256 digest;
  for (const DuplicateNote& note : notes) {
    seqs.add(seq_in(note.run));
    digest.add(std::string_view(reinterpret_cast<const char*>(note.run.bytes.data()), note.run.bytes.size()));
  }
  const std::string name = to_hex(digest.finish());
  const auto question = [&](const std::string& text) {
    return [&seqs, &text] { return Statement{text, Params().add(seqs)}; };
  };
  const Rows& held = ask("noted:" + name, question(sql().lock_run_heads));
  const Rows& there = ask("noted there:" + name, question(sql().find_run_heads));
  if (there.size() > held.size()) throw LockContended{};
  const Rows& stored = ask("duplicates:" + name, question(sql().read_seen));
  std::map<RunId, std::string_view> tenants;
  for (int row = 0; row < held.size(); ++row) tenants.emplace(held.uuid(row, 1), held.bytes(row, 2));
  std::map<Seq, Duplicates> before;
  for (int row = 0; row < stored.size(); ++row)
    before.emplace(stored.integer(row, 0), decode_duplicates(stored.bytes(row, 1)));
  for (const DuplicateNote& note : notes) {
    if (!tenants.contains(note.run)) continue;
    remember(seen_, note.run);
    merge_duplicates(seen_.try_emplace(note.run, before[seq_in(note.run)]).first->second, note.seen);
  }
  if (tenants.empty()) return;
  Column seq{Type::int8}, of{Type::text}, seen{Type::bytes};
  for (const auto& [run, tenant] : tenants) {
    seq.add(seq_in(run));
    of.add(tenant);
    seen.add(encode_duplicates(seen_.at(run)));
  }
  Statement all = Bulk{{{"seq", &seq}, {"tenant", &of}, {"seen", &seen}}}.insert_into("latchkey.duplicates");
  all.sql += " ON CONFLICT (seq) DO UPDATE SET seen = excluded.seen";
  write(std::move(all));
}

}  // namespace latchkey::pg
