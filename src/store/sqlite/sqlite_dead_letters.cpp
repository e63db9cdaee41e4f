// Dead letters in the tables: entries, their members, and the recorded operator actions.
#include "base/assert.hpp"
#include "store/listing.hpp"
#include "store/sqlite/dead_letter_rows.hpp"
#include "store/sqlite/sqlite_tables.hpp"

namespace latchkey {

Uuid SqliteTables::add_dead_letter(const Run& run) {
  will_change();
  const DeadLetterMember member = describe_member(run);
  Statement query = database_.prepare(find_sql("find_open_dead_letter"));
  query.bind_text(1, run.head->tenant).bind_text(2, run.head->function);
  const bool known = query.step();
  DeadLetter dead_letter = known ? read_dead_letter(query) : open_entry(next_id(member.at), run);
  query.reset();
  add_to_entry(dead_letter, member);
  Statement put = database_.prepare(find_sql("put_dead_letter"));
  bind_dead_letter(put, dead_letter);
  put.run();
  Statement add = database_.prepare(find_sql("add_member"));
  bind_member(add, member, dead_letter.id);
  add.run();
  return dead_letter.id;
}

bool SqliteTables::has_unacknowledged_dead_letter(RunId run) {
  Statement query = database_.prepare(find_sql("has_unacknowledged_dead_letter"));
  query.bind(1, seq_of(run));
  LK_ASSERT(query.step());
  return query.integer(0) != 0;
}

std::optional<Uuid> SqliteTables::dead_letter_of(const Run& run) {
  if (!run.as<Failed>()) return std::nullopt;
  Statement query = database_.prepare(find_sql("dead_letter_of"));
  query.bind(1, seq_of(run.id())).bind(2, run.generation);
  if (!query.step()) return std::nullopt;
  return read_uuid(query.bytes(0));
}

std::optional<DeadLetter> SqliteTables::acknowledge(const std::optional<std::string>& tenant, Uuid id,
                                                    const std::string& actor, Instant now) {
  Statement query = database_.prepare(find_sql("read_dead_letter"));
  query.bind(1, seq_of(id));
  if (!query.step()) return std::nullopt;
  DeadLetter dead_letter = read_dead_letter(query);
  query.reset();
  if (dead_letter.id != id || (tenant && dead_letter.tenant != *tenant)) return std::nullopt;
  if (dead_letter.acknowledged_at) return dead_letter;
  dead_letter.acknowledged_at = now;
  dead_letter.acknowledged_by = actor;
  return change([&](Database& database) {
           Statement put = database.prepare(find_sql("put_dead_letter"));
           bind_dead_letter(put, dead_letter);
           put.run();
         }),
         dead_letter;
}

std::optional<DeadLetter> SqliteTables::find_dead_letter(const std::optional<std::string>& tenant, Uuid id) {
  Statement query = database_.prepare(find_sql("read_dead_letter"));
  query.bind(1, seq_of(id));
  if (!query.step()) return std::nullopt;
  DeadLetter dead_letter = read_dead_letter(query);
  if (dead_letter.id != id || (tenant && dead_letter.tenant != *tenant)) return std::nullopt;
  return dead_letter;
}

std::vector<DeadLetterMember> SqliteTables::list_members(Uuid dead_letter, MemberPosition after, std::uint32_t limit) {
  return read_members(database_, dead_letter, after, limit);
}

std::optional<DeadLetterMember> SqliteTables::find_member(Uuid dead_letter, RunId run) {
  Statement query = database_.prepare(find_sql("find_member"));
  query.bind(1, seq_of(run)).bind(2, seq_of(dead_letter));
  if (!query.step()) return std::nullopt;
  DeadLetterMember member = read_member(query);
  return member.run == run ? std::optional(std::move(member)) : std::nullopt;
}

bool SqliteTables::add_step(const DeadLetterMember& member, const MemberStep& step) {
  Statement known = database_.prepare(find_sql("has_step"));
  known.bind(1, seq_of(member.run)).bind(2, member.generation).bind(3, static_cast<int>(step.kind));
  if (known.step()) return false;
  known.reset();
  will_change();
  database_.prepare(find_sql("add_step"))
      .bind(1, seq_of(member.run))
      .bind(2, member.generation)
      .bind(3, static_cast<int>(step.kind))
      .bind_text(4, step.by)
      .bind(5, to_ms(step.at))
      .bind_blob(6, step.note)
      .run();
  return true;
}

void SqliteTables::erase_members(RunId run) {
  std::vector<Seq> dead_letters;
  Statement members = database_.prepare(find_sql("dead_letters_of_run"));
  members.bind(1, seq_of(run));
  while (members.step()) dead_letters.push_back(members.integer(0));
  members.reset();
  if (dead_letters.empty()) return;
  will_change();
  database_.prepare(find_sql("erase_members")).bind(1, seq_of(run)).run();
  database_.prepare(find_sql("erase_steps")).bind(1, seq_of(run)).run();
  for (const Seq dead_letter : dead_letters)
    database_.prepare(find_sql("erase_empty_dead_letter")).bind(1, dead_letter).run();
}

}  // namespace latchkey
