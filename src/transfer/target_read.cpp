// Reads the copy back inside the transaction that wrote it, with the store's own readers.
#include <algorithm>
#include <limits>
#include <map>

#include "store/packing.hpp"
#include "store/postgres/dead_letter_columns.hpp"
#include "store/postgres/run_columns.hpp"
#include "store/postgres/statements.hpp"
#include "transfer/target.hpp"

namespace latchkey::transfer {

using pg::Params;
using pg::Rows;

namespace {

constexpr std::int64_t kRowsAtOnce = 250;
constexpr std::int64_t kBeforeAll = std::numeric_limits<std::int64_t>::max();

}  // namespace

void Target::read_runs(StoreVisitor& into) {
  static const std::string kSql =
      "SELECT " + pg::sql().head_columns + ", " + pg::sql().state_columns +
      ", k.seq IS NOT NULL, d.seen FROM latchkey.runs r JOIN latchkey.all_states s ON s.seq = r.seq "
      "LEFT JOIN latchkey.keys k ON k.hash = r.hash AND k.seq = r.seq "
      "LEFT JOIN latchkey.duplicates d ON d.seq = r.seq WHERE r.seq < $1 ORDER BY r.seq DESC LIMIT $2";
  constexpr int kHasKey = pg::kHeadColumnCount + pg::kStateColumnCount, kSeen = kHasKey + 1;
  for (std::int64_t before = kBeforeAll;;) {
    const Rows rows = run({kSql, Params().add(before).add(kRowsAtOnce)});
    for (int row = 0; row < rows.size(); ++row) {
      TransferredRun moved{.run = pg::read_run(rows, row), .has_key = rows.boolean(row, kHasKey)};
      if (!rows.is_null(row, kSeen)) moved.duplicates = decode_duplicates(rows.bytes(row, kSeen));
      into.add_run(moved);
      before = rows.integer(row, 0);
    }
    if (rows.size() < kRowsAtOnce) return;
  }
}

void Target::read_waits(StoreVisitor& into) {
  Wait last;
  while (true) {
    const Rows rows = run(
        {"SELECT predecessor, dependent, run FROM latchkey.waits WHERE (predecessor, dependent) > ($1, $2) ORDER BY "
         "predecessor, dependent LIMIT $3",
         Params().add(last.predecessor).add(last.dependent).add(kRowsAtOnce)});
    for (int row = 0; row < rows.size(); ++row) {
      last = {rows.integer(row, 0), rows.integer(row, 1), rows.uuid(row, 2)};
      into.add_wait(last);
    }
    if (rows.size() < kRowsAtOnce) return;
  }
}

void Target::read_dead_letters(StoreVisitor& into) {
  for (std::int64_t before = kBeforeAll;;) {
    const Rows rows = run({"SELECT " + pg::sql().dead_letter_columns +
                               " FROM latchkey.dead_letters WHERE number < $1 ORDER BY number DESC LIMIT $2",
                           Params().add(before).add(kRowsAtOnce)});
    for (int row = 0; row < rows.size(); ++row) {
      const DeadLetter dead_letter = pg::read_dead_letter(rows, row);
      into.add_dead_letter(dead_letter);
      read_members(dead_letter, into);
      before = pg::seq_in(dead_letter.id);
    }
    if (rows.size() < kRowsAtOnce) return;
  }
}

void Target::read_members(const DeadLetter& dead_letter, StoreVisitor& into) {
  MemberPosition after;
  while (true) {
    const auto from = [&] {
      return Params()
          .add(pg::seq_in(dead_letter.id))
          .add(static_cast<std::int64_t>(after.counter))
          .add(std::int64_t{after.generation});
    };
    const std::string page =
        " FROM latchkey.dead_letter_members WHERE letter = $1 AND (seq, generation) > ($2, $3) ORDER BY seq, "
        "generation LIMIT $4";
    const Rows rows = run({"SELECT " + pg::sql().member_columns + page, from().add(kRowsAtOnce)});
    const Rows steps =
        run({"SELECT m.run, s.generation, s.kind, s.actor, s.at, s.note FROM (SELECT seq, generation, "
             "run" +
                 page +
                 ") m JOIN latchkey.dead_letter_steps s ON s.seq = m.seq AND s.generation = "
                 "m.generation ORDER BY s.kind",
             from().add(kRowsAtOnce)});
    std::map<std::pair<Uuid, std::int64_t>, std::vector<MemberStep>> taken;
    for (int row = 0; row < steps.size(); ++row)
      taken[{steps.uuid(row, 0), steps.integer(row, 1)}].push_back(
          {.kind = static_cast<StepKind>(steps.integer(row, 2)),
           .by = std::string(steps.bytes(row, 3)),
           .at = from_ms(steps.integer(row, 4)),
           .note = std::string(steps.bytes(row, 5))});
    for (int row = 0; row < rows.size(); ++row) {
      DeadLetterMember member = pg::read_member(rows, row);
      member.steps = taken[{member.run, member.generation}];
      into.add_member(member, dead_letter);
      after = latchkey::position_of(member);
    }
    if (rows.size() < kRowsAtOnce) return;
  }
}

void Target::read_tokens(StoreVisitor& into) {
  const Rows rows = run({"SELECT * FROM latchkey.tokens", {}});
  std::vector<TokenRecord> tokens;
  for (int row = 0; row < rows.size(); ++row) tokens.push_back(pg::read_token(rows, row));
  std::ranges::sort(tokens, {}, &TokenRecord::id);
  for (const TokenRecord& token : tokens) into.add_token(token);
}

// Counts the tables directly, so that rows that belong to no run are counted, too.
Counts Target::count_rows() {
  Counts counts;
  const Rows statuses =
      run({"SELECT s.status, count(*) FROM latchkey.all_states s GROUP BY s.status ORDER BY s.status", {}});
  for (int row = 0; row < statuses.size(); ++row)
    counts.runs.at(static_cast<std::size_t>(statuses.integer(row, 0))) =
        static_cast<std::uint64_t>(statuses.integer(row, 1));
  const auto count = [&](const char* table) {
    return static_cast<std::uint64_t>(run({std::string("SELECT count(*) FROM latchkey.") + table, {}}).integer(0, 0));
  };
  counts.keys = count("keys");
  counts.waits = count("waits");
  counts.duplicates = count("duplicates");
  counts.dead_letters = count("dead_letters");
  counts.members = count("dead_letter_members");
  counts.steps = count("dead_letter_steps");
  counts.tokens = count("tokens");
  return counts;
}

Summary Target::read_back() {
  Tally tally;
  read_runs(tally);
  read_dead_letters(tally);
  read_tokens(tally);
  read_waits(tally);
  Summary summary = tally.finish();
  summary.counts = count_rows();
  return summary;
}

}  // namespace latchkey::transfer
