#include "store/sqlite/dead_letter_rows.hpp"

#include "store/sqlite/run_rows.hpp"

namespace latchkey {
namespace {

std::span<const unsigned char> view(const Uuid& id) { return id.bytes; }

}  // namespace

void bind_dead_letter(Statement& put, const DeadLetter& dead_letter) {
  put.bind(1, seq_of(dead_letter.id))
      .bind_blob(2, view(dead_letter.id))
      .bind_text(3, dead_letter.tenant)
      .bind_text(4, dead_letter.function)
      .bind_text(5, dead_letter.code)
      .bind_blob(6, dead_letter.reason)
      .bind_blob(7, view(dead_letter.latest_run))
      .bind(8, static_cast<std::int64_t>(dead_letter.count))
      .bind(9, to_ms(dead_letter.opened_at))
      .bind(10, to_ms(dead_letter.updated_at))
      .bind_text(12, dead_letter.acknowledged_by);
  if (dead_letter.acknowledged_at) {
    put.bind(11, to_ms(*dead_letter.acknowledged_at));
  } else {
    put.bind(11, std::nullopt);
  }
}

DeadLetter read_dead_letter(const Statement& row) {
  DeadLetter dead_letter;
  dead_letter.id = read_uuid(row.bytes(1));
  dead_letter.tenant = row.bytes(2);
  dead_letter.function = row.bytes(3);
  dead_letter.code = row.bytes(4);
  dead_letter.reason = row.bytes(5);
  dead_letter.latest_run = read_uuid(row.bytes(6));
  dead_letter.count = static_cast<std::uint64_t>(row.integer(7));
  dead_letter.opened_at = from_ms(row.integer(8));
  dead_letter.updated_at = from_ms(row.integer(9));
  if (!row.is_null(10)) dead_letter.acknowledged_at = from_ms(row.integer(10));
  dead_letter.acknowledged_by = row.bytes(11);
  return dead_letter;
}

void bind_member(Statement& add, const DeadLetterMember& member, const Uuid& dead_letter) {
  add.bind(1, seq_of(member.run))
      .bind(2, member.generation)
      .bind(3, seq_of(dead_letter))
      .bind_blob(4, view(member.run))
      .bind_blob(5, member.key)
      .bind_text(6, member.code)
      .bind_blob(7, member.reason)
      .bind(8, member.attempts)
      .bind(9, static_cast<int>(member.effect))
      .bind(10, to_ms(member.at));
}

DeadLetterMember read_member(const Statement& row) {
  return {.run = read_uuid(row.bytes(0)),
          .generation = static_cast<std::uint32_t>(row.integer(1)),
          .key = std::string(row.bytes(2)),
          .code = std::string(row.bytes(3)),
          .reason = std::string(row.bytes(4)),
          .attempts = static_cast<std::uint32_t>(row.integer(5)),
          .effect = static_cast<Effect>(row.integer(6)),
          .at = from_ms(row.integer(7))};
}

std::vector<DeadLetterMember> read_members(Database& database, Uuid dead_letter, MemberPosition after,
                                           std::uint32_t limit) {
  Statement query = database.prepare(find_sql("list_members"));
  query.bind(1, seq_of(dead_letter)).bind(2, static_cast<Seq>(after.counter)).bind(3, after.generation).bind(4, limit);
  std::vector<DeadLetterMember> members;
  while (query.step()) members.push_back(read_member(query));
  return members;
}

MemberStep read_step(const Statement& row) {
  return {.kind = static_cast<StepKind>(row.integer(0)),
          .by = std::string(row.bytes(1)),
          .at = from_ms(row.integer(2)),
          .note = std::string(row.bytes(3))};
}

}  // namespace latchkey
