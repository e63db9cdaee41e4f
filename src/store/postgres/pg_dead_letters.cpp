// PgTables: dead letters, tokens and counts of duplicates. A group's open dead letter is cached for the batch, because
// many runs of a batch may fail into it. Everything else is read with a query when it is needed.
#include "base/hex.hpp"
#include "base/sha256.hpp"
#include "store/listing.hpp"
#include "store/packing.hpp"
#include "store/postgres/dead_letter_columns.hpp"
#include "store/postgres/pg_tables.hpp"
#include "store/postgres/statements.hpp"

namespace latchkey::pg {
namespace {

// Identifies a query within the batch.
std::string name_of(std::string_view kind, const Uuid& id, std::string_view more = "") {
  return std::string(kind) + ":" + to_string(id) + ":" + std::string(more);
}

}  // namespace

Uuid PgTables::add_dead_letter(const Run& run) {
  const DeadLetterGroup group{run.head->tenant, run.head->function};
  if (contended_dead_letters_.contains(group)) throw LockContended{};
  const auto at = dead_letters_.find(group);
  if (at == dead_letters_.end()) {
    read_set_.dead_letters.insert(group);
    throw NeedsRead{};
  }
  const DeadLetterMember member = describe_member(run);
  DeadLetter dead_letter = at->second.now ? *at->second.now : open_entry(next_id(member.at), run);
  add_to_entry(dead_letter, member);
  save_for_undo(dead_letters_, group);
  auto& slot = dead_letters_[group];
  slot.now = dead_letter;
  slot.is_changed = true;
  write(put_member(member, dead_letter.id, run.head->tenant));
  return dead_letter.id;
}

// The run must be in the slice that is purged.
bool PgTables::has_unacknowledged_dead_letter(RunId run) {
  const auto found = dead_letters_of_.find(seq_in(run));
  return found != dead_letters_of_.end() && found->second.is_unread;
}

std::optional<Uuid> PgTables::dead_letter_of(const Run& run) {
  if (!run.as<Failed>()) return std::nullopt;
  const Rows& rows = query(name_of("dead_letter_of", run.id(), std::to_string(run.generation)), [&] {
    return Statement{sql().dead_letter_of, Params().add(seq_in(run.id())).add(std::int64_t{run.generation})};
  });
  return rows.empty() ? std::nullopt : std::optional(rows.uuid(0, 0));
}

std::optional<DeadLetter> PgTables::find_dead_letter(const std::optional<std::string>& tenant, Uuid id) {
  const Rows& rows = query_for_update(name_of("dead_letter", id, tenant.value_or("")), [&] {
    return Statement{sql().find_dead_letter, Params().add(seq_in(id)).add(id).add_or_null(tenant)};
  });
  return rows.empty() ? std::nullopt : std::optional(read_dead_letter(rows, 0));
}

std::optional<DeadLetter> PgTables::acknowledge(const std::optional<std::string>& tenant, Uuid id,
                                                const std::string& actor, Instant now) {
  auto dead_letter = find_dead_letter(tenant, id);
  if (!dead_letter || dead_letter->acknowledged_at) return dead_letter;
  dead_letter->acknowledged_at = now;
  dead_letter->acknowledged_by = actor;
  // Runs that fail later in this batch need a new dead letter, so drop the cached one. Failures before this call were
  // written before the dead letter was read.
  const DeadLetterGroup group{dead_letter->tenant, dead_letter->function};
  save_for_undo(dead_letters_, group);
  dead_letters_.erase(group);
  written_dead_letters_.push_back(group);
  undo_.emplace_back([this] { written_dead_letters_.pop_back(); });
  write({sql().acknowledge_dead_letter, Params().add(seq_in(id)).add(id).add(to_ms(now)).add(std::string_view(actor))});
  return dead_letter;
}

std::vector<DeadLetterMember> PgTables::list_members(Uuid dead_letter, MemberPosition after, std::uint32_t limit) {
  const Rows& rows = query(name_of("members", dead_letter, write_position(after) + "/" + std::to_string(limit)), [&] {
    return Statement{sql().members_of_dead_letter, Params()
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
  const Rows& rows = query(name_of("member", dead_letter, to_string(run)), [&] {
    return Statement{sql().find_member, Params().add(seq_in(dead_letter)).add(seq_in(run)).add(run)};
  });
  return rows.empty() ? std::nullopt : std::optional(read_member(rows, 0));
}

bool PgTables::add_step(const DeadLetterMember& member, const MemberStep& step) {
  const auto kind = static_cast<std::int64_t>(step.kind);
  const std::string name = name_of("step", member.run, std::to_string(member.generation) + "/" + std::to_string(kind));
  if (!query(name, [&] {
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
  const auto found = dead_letters_of_.find(seq_in(run));
  if (found == dead_letters_of_.end()) return;
  save_for_undo(erased_members_, seq_in(run));
  erased_members_[seq_in(run)] = found->second.numbers;
}

bool PgTables::add_token(const TokenRecord& token) {
  if (!query("token:" + token.id, [&] {
         return Statement{sql().has_token, Params().add(std::string_view(token.id))};
       }).empty())
    return false;
  write(insert_token(token));
  return true;
}

bool PgTables::revoke_token(const std::string& id, Instant now) {
  const Rows& rows = query_for_update("revoke:" + id, [&] {
    return Statement{sql().when_revoked, Params().add(std::string_view(id))};
  });
  if (rows.empty()) return false;
  if (rows.is_null(0, 0)) write({sql().revoke_token, Params().add(std::string_view(id)).add(to_ms(now))});
  return true;
}

// Locks the heads of the runs (see duplicates.sql), so that a transaction that owns a run does not block the count.
void PgTables::add_all_duplicates(std::span<const DuplicateNote> notes) {
  Column seqs{Type::int8};
  Sha256 digest;
  for (const DuplicateNote& note : notes) {
    seqs.add(seq_in(note.run));
    digest.add(std::string_view(reinterpret_cast<const char*>(note.run.bytes.data()), note.run.bytes.size()));
  }
  const std::string name = to_hex(digest.finish());
  const auto statement = [&](const std::string& text) {
    return [&seqs, &text] { return Statement{text, Params().add(seqs)}; };
  };
  const Rows& locked = query("locked heads:" + name, statement(sql().lock_run_heads));
  const Rows& existing = query("heads:" + name, statement(sql().find_run_heads));
  if (existing.size() > locked.size()) throw LockContended{};
  const Rows& stored = query("duplicates:" + name, statement(sql().read_seen));
  std::map<RunId, std::string_view> tenants;
  for (int row = 0; row < locked.size(); ++row) tenants.emplace(locked.uuid(row, 1), locked.bytes(row, 2));
  std::map<Seq, Duplicates> before;
  for (int row = 0; row < stored.size(); ++row)
    before.emplace(stored.integer(row, 0), decode_duplicates(stored.bytes(row, 1)));
  for (const DuplicateNote& note : notes) {
    if (!tenants.contains(note.run)) continue;
    save_for_undo(seen_, note.run);
    merge_duplicates(seen_.try_emplace(note.run, before[seq_in(note.run)]).first->second, note.seen);
  }
  if (tenants.empty()) return;
  Column seq{Type::int8}, tenant_column{Type::text}, seen{Type::bytes};
  for (const auto& [run, tenant] : tenants) {
    seq.add(seq_in(run));
    tenant_column.add(tenant);
    seen.add(encode_duplicates(seen_.at(run)));
  }
  Statement all = Bulk{{{"seq", &seq}, {"tenant", &tenant_column}, {"seen", &seen}}}.insert_into("latchkey.duplicates");
  all.sql += " ON CONFLICT (seq) DO UPDATE SET seen = excluded.seen";
  write(std::move(all));
}

}  // namespace latchkey::pg
