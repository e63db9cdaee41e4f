// Writes the content of a store into PostgreSQL.
#include <algorithm>

#include "store/packing.hpp"
#include "store/postgres/dead_letter_columns.hpp"
#include "store/postgres/run_columns.hpp"
#include "transfer/target.hpp"

namespace latchkey::transfer {

using pg::Bulk;
using pg::Column;
using pg::Params;
using pg::seq_in;
using pg::Type;

namespace {

// The size of a slice: an array parameter can have one gigabyte, and client and server have it in memory.
constexpr std::size_t kRowsMost = 1'000;
constexpr std::size_t kBytesMost = 8 * 1024 * 1024;

std::size_t size_of(const Run& run) {
  const auto* completed = run.as<Completed>();
  return run.head->input.size() + run.last_error.size() + (completed ? completed->result.size() : 0);
}

}  // namespace

void Writer::note_tenant(const std::string& tenant) {
  const auto at = std::ranges::lower_bound(tenants_, tenant);
  if (at != tenants_.end() && *at == tenant) return;
  tenants_.insert(at, tenant);
  target_.run({"SELECT latchkey.note_tenant($1)", Params().add(std::string_view(tenant))});
}

void Writer::add_run(const TransferredRun& moved) {
  note_tenant(moved.run.head->tenant);
  runs_.push_back(moved);
  bytes_ += size_of(moved.run);
  if (runs_.size() >= kRowsMost || bytes_ >= kBytesMost) write_runs();
}

void Writer::write_runs() {
  if (runs_.empty()) return;
  std::vector<const Run*> runs;
  for (const TransferredRun& moved : runs_) runs.push_back(&moved.run);
  target_.run(pg::insert_heads(runs));
  target_.run(pg::insert_states(runs));
  write_settlements();
  write_keys();
  write_duplicates();
  runs_.clear();
  bytes_ = 0;
}

// Each generation before the run's current one was settled.
void Writer::write_settlements() {
  Column seq{Type::int8}, generation{Type::int4};
  for (const TransferredRun& moved : runs_) {
    for (std::uint32_t nth = 1; nth < moved.run.generation + moved.run.is_settled(); ++nth) {
      seq.add(pg::seq_in(moved.run.id()));
      generation.add(nth);
    }
  }
  if (seq.size() > 0)
    target_.run(Bulk{{{"seq", &seq}, {"generation", &generation}}}.insert_into("latchkey.settlements"));
}

void Writer::write_keys() {
  Column hash{Type::uuid}, tenant{Type::text}, seq{Type::int8};
  for (const TransferredRun& moved : runs_) {
    if (!moved.has_key) continue;
    hash.add(pg::name_key(moved.run.head->key_hash));
    tenant.add(moved.run.head->tenant);
    seq.add(seq_in(moved.run.id()));
  }
  if (hash.size() > 0)
    target_.run(Bulk{{{"hash", &hash}, {"tenant", &tenant}, {"seq", &seq}}}.insert_into("latchkey.keys"));
}

void Writer::write_duplicates() {
  Column seq{Type::int8}, tenant{Type::text}, seen{Type::bytes};
  for (const TransferredRun& moved : runs_) {
    if (!moved.duplicates) continue;
    seq.add(seq_in(moved.run.id()));
    tenant.add(moved.run.head->tenant);
    seen.add(encode_duplicates(*moved.duplicates));
  }
  if (seq.size() > 0)
    target_.run(Bulk{{{"seq", &seq}, {"tenant", &tenant}, {"seen", &seen}}}.insert_into("latchkey.duplicates"));
}

void Writer::add_wait(const Wait& wait) {
  waits_.push_back(wait);
  if (waits_.size() >= kRowsMost) write_waits();
}

void Writer::write_waits() {
  if (waits_.empty()) return;
  write_runs();  // the waits take their tenants from the runs
  Column predecessor{Type::int8}, dependent{Type::int8}, run{Type::uuid};
  for (const Wait& wait : waits_) {
    predecessor.add(wait.predecessor);
    dependent.add(wait.dependent);
    run.add(wait.run);
  }
  target_.run(
      {"INSERT INTO latchkey.waits (predecessor, dependent, run, tenant) SELECT u.p, u.d, u.r, r.tenant FROM "
       "unnest($1, $2, $3) AS u(p, d, r) JOIN latchkey.runs r ON r.seq = u.d",
       Params().add(predecessor).add(dependent).add(run)});
  waits_.clear();
}

void Writer::add_dead_letter(const DeadLetter& dead_letter) {
  note_tenant(dead_letter.tenant);
  target_.run(pg::insert_dead_letter(dead_letter));
  // The engine role sends the notification itself: it has no trigger for this.
  target_.run({"SELECT latchkey.tell_dead_letter($1, $2)",
               Params().add(std::string_view(dead_letter.tenant)).add(std::string_view(dead_letter.function))});
}

void Writer::add_member(const DeadLetterMember& member, const DeadLetter& dead_letter) {
  members_.push_back({member, seq_in(dead_letter.id), dead_letter.tenant});
  if (members_.size() >= kRowsMost) write_members();
}

void Writer::write_members() {
  if (members_.empty()) return;
  Column seq{Type::int8}, generation{Type::int4}, tenant{Type::text}, dead_letter{Type::int8}, run{Type::uuid},
      key{Type::bytes}, code{Type::text}, reason{Type::bytes}, attempts{Type::int4}, effect{Type::int4}, at{Type::int8};
  for (const Member& one : members_) {
    seq.add(seq_in(one.member.run));
    generation.add(one.member.generation);
    tenant.add(one.tenant);
    dead_letter.add(one.dead_letter);
    run.add(one.member.run);
    key.add(one.member.key);
    code.add(one.member.code);
    reason.add(one.member.reason);
    attempts.add(one.member.attempts);
    effect.add(static_cast<std::int64_t>(one.member.effect));
    at.add(to_ms(one.member.at));
  }
  target_.run(Bulk{{{"seq", &seq},
                    {"generation", &generation},
                    {"tenant", &tenant},
                    {"letter", &dead_letter},
                    {"run", &run},
                    {"key", &key},
                    {"code", &code},
                    {"reason", &reason},
                    {"attempts", &attempts},
                    {"effect", &effect},
                    {"at", &at}}}
                  .insert_into("latchkey.dead_letter_members"));
  write_steps();
  members_.clear();
}

void Writer::write_steps() {
  Column seq{Type::int8}, generation{Type::int4}, tenant{Type::text}, kind{Type::int4}, actor{Type::text},
      at{Type::int8}, note{Type::bytes};
  for (const Member& one : members_) {
    for (const MemberStep& step : one.member.steps) {
      seq.add(seq_in(one.member.run));
      generation.add(one.member.generation);
      tenant.add(one.tenant);
      kind.add(static_cast<std::int64_t>(step.kind));
      actor.add(step.by);
      at.add(to_ms(step.at));
      note.add(step.note);
    }
  }
  if (seq.size() == 0) return;
  target_.run(Bulk{{{"seq", &seq},
                    {"generation", &generation},
                    {"tenant", &tenant},
                    {"kind", &kind},
                    {"actor", &actor},
                    {"at", &at},
                    {"note", &note}}}
                  .insert_into("latchkey.dead_letter_steps"));
}

void Writer::add_token(const TokenRecord& token) { target_.run(pg::insert_token(token)); }

void Writer::flush() {
  write_runs();
  write_waits();
  write_members();
}

}  // namespace latchkey::transfer
