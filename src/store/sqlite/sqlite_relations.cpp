// What stands beside runs in the tables: who waits for whom, dead letters, suppressed duplicates.
#include "base/assert.hpp"
#include "store/listing.hpp"
#include "store/sqlite/letter_rows.hpp"
#include "store/sqlite/sqlite_tables.hpp"

namespace latchkey {

void SqliteTables::add_wait(RunId predecessor, RunId dependent) {
  will_change();
  database_.prepare(find_sql("add_wait")).bind(1, seq_of(predecessor)).bind(2, seq_of(dependent)).run();
  any_waits_ = true;
}

void SqliteTables::remove_wait(RunId predecessor, RunId dependent) {
  will_change();
  database_.prepare(find_sql("remove_wait")).bind(1, seq_of(predecessor)).bind(2, seq_of(dependent)).run();
}

std::vector<RunId> SqliteTables::dependents(RunId predecessor) {
  std::vector<Seq> seqs;
  Statement look_up = database_.prepare(find_sql("dependents"));
  look_up.bind(1, seq_of(predecessor));
  while (look_up.step()) seqs.push_back(look_up.integer(0));
  std::vector<RunId> ids;
  for (const Seq seq : seqs)
    if (const auto run = read(seq)) ids.push_back(run->id());
  return ids;
}

Uuid SqliteTables::add_dead_letter(const Run& run) {
  will_change();
  const DeadLetterMember member = describe_member(run);
  Statement look_up = database_.prepare(find_sql("find_open_letter"));
  look_up.bind_text(1, run.head->tenant).bind_text(2, run.head->function);
  const bool known = look_up.step();
  DeadLetter letter = known ? read_letter(look_up) : open_entry(next_id(member.at), run);
  look_up.reset();
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
  Statement look_up = database_.prepare(find_sql("has_unread_letter"));
  look_up.bind(1, seq_of(run));
  LK_ASSERT(look_up.step());
  return look_up.integer(0) != 0;
}

std::optional<Uuid> SqliteTables::dead_letter_of(const Run& run) {
  if (!run.as<Failed>()) return std::nullopt;
  Statement look_up = database_.prepare(find_sql("letter_of"));
  look_up.bind(1, seq_of(run.id())).bind(2, run.generation);
  if (!look_up.step()) return std::nullopt;
  return read_uuid(look_up.bytes(0));
}

void SqliteTables::add_duplicates(const DuplicateNote& note) {
  if (!find(note.run)) return;
  will_change();
  Statement look_up = database_.prepare(find_sql("read_duplicates"));
  look_up.bind(1, seq_of(note.run));
  Duplicates seen;
  if (look_up.step()) seen = decode_duplicates(look_up.bytes(0));
  look_up.reset();
  merge_duplicates(seen, note.seen);
  const std::string bytes = encode_duplicates(seen);
  database_.prepare(find_sql("put_duplicates")).bind(1, seq_of(note.run)).bind_blob(2, bytes).run();
}

}  // namespace latchkey
