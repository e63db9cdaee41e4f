// Waits between runs, and suppressed duplicates.
#include "store/packing.hpp"
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

void SqliteTables::remove_waits_of(RunId dependent) {
  will_change();
  database_.prepare(find_sql("remove_waits_of")).bind(1, seq_of(dependent)).run();
}

std::vector<RunId> SqliteTables::dependents(RunId predecessor) {
  std::vector<Seq> seqs;
  Statement query = database_.prepare(find_sql("dependents"));
  query.bind(1, seq_of(predecessor));
  while (query.step()) seqs.push_back(query.integer(0));
  std::vector<RunId> ids;
  for (const Seq seq : seqs)
    if (const auto run = read(seq)) ids.push_back(run->id());
  return ids;
}

void SqliteTables::add_duplicates(const DuplicateNote& note) {
  if (!find(note.run)) return;
  will_change();
  Statement query = database_.prepare(find_sql("read_duplicates"));
  query.bind(1, seq_of(note.run));
  Duplicates seen;
  if (query.step()) seen = decode_duplicates(query.bytes(0));
  query.reset();
  merge_duplicates(seen, note.seen);
  const std::string bytes = encode_duplicates(seen);
  database_.prepare(find_sql("put_duplicates")).bind(1, seq_of(note.run)).bind_blob(2, bytes).run();
}

}  // namespace latchkey
