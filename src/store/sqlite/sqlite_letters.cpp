// Dead letters in the tables: entries, their members, and what people did about them.
#include "base/assert.hpp"
#include "store/listing.hpp"
#include "store/sqlite/letter_rows.hpp"
#include "store/sqlite/sqlite_tables.hpp"

namespace latchkey {

Uuid SqliteTables::add_dead_letter(const Run& run) {
  will_change();
  const DeadLetterMember member = describe_member(run);
  Statement query = database_.prepare(find_sql("find_open_letter"));
  query.bind_text(1, run.head->tenant).bind_text(2, run.head->function);
  const bool known = query.step();
  DeadLetter letter = known ? read_letter(query) : open_entry(next_id(member.at), run);
  query.reset();
  add_to_entry(letter, member);
  Statement put = database_.prepare(find_sql("put_letter"));
  bind_letter(put, letter);
  put.run();
  Statement add = database_.prepare(find_sql("add_member"));
  bind_member(add, member, letter.id);
  add.run();
  return letter.id;
}

bool SqliteTables::has_unread_dead_letter(RunId run) {
  Statement query = database_.prepare(find_sql("has_unread_letter"));
  query.bind(1, seq_of(run));
  LK_ASSERT(query.step());
  return query.integer(0) != 0;
}

std::optional<Uuid> SqliteTables::dead_letter_of(const Run& run) {
  if (!run.as<Failed>()) return std::nullopt;
  Statement query = database_.prepare(find_sql("letter_of"));
  query.bind(1, seq_of(run.id())).bind(2, run.generation);
  if (!query.step()) return std::nullopt;
  return read_uuid(query.bytes(0));
}

std::optional<DeadLetter> SqliteTables::acknowledge(const std::optional<std::string>& tenant, Uuid id,
                                                    const std::string& actor, Instant now) {
  Statement query = database_.prepare(find_sql("read_letter"));
  query.bind(1, seq_of(id));
  if (!query.step()) return std::nullopt;
  DeadLetter letter = read_letter(query);
  query.reset();
  if (letter.id != id || (tenant && letter.tenant != *tenant)) return std::nullopt;
  if (letter.acknowledged_at) return letter;
  letter.acknowledged_at = now;
  letter.acknowledged_by = actor;
  return change([&](Database& database) {
           Statement put = database.prepare(find_sql("put_letter"));
           bind_letter(put, letter);
           put.run();
         }),
         letter;
}

std::optional<DeadLetter> SqliteTables::find_dead_letter(const std::optional<std::string>& tenant, Uuid id) {
  Statement query = database_.prepare(find_sql("read_letter"));
  query.bind(1, seq_of(id));
  if (!query.step()) return std::nullopt;
  DeadLetter letter = read_letter(query);
  if (letter.id != id || (tenant && letter.tenant != *tenant)) return std::nullopt;
  return letter;
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
  std::vector<Seq> letters;
  Statement members = database_.prepare(find_sql("letters_of_run"));
  members.bind(1, seq_of(run));
  while (members.step()) letters.push_back(members.integer(0));
  members.reset();
  if (letters.empty()) return;
  will_change();
  database_.prepare(find_sql("erase_members")).bind(1, seq_of(run)).run();
  database_.prepare(find_sql("erase_steps")).bind(1, seq_of(run)).run();
  for (const Seq letter : letters) database_.prepare(find_sql("erase_empty_letter")).bind(1, letter).run();
}

}  // namespace latchkey
