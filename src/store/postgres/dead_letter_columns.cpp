#include "store/postgres/dead_letter_columns.hpp"

#include <cstring>

#include "store/postgres/run_columns.hpp"
#include "store/postgres/statements.hpp"

namespace latchkey::pg {

namespace {

std::optional<Instant> instant(const Rows& rows, int row, int column) {
  if (rows.is_null(row, column)) return std::nullopt;
  return from_ms(rows.integer(row, column));
}

std::optional<std::int64_t> ms(const std::optional<Instant>& at) {
  return at ? std::optional(to_ms(*at)) : std::nullopt;
}

Params dead_letter_params(const DeadLetter& dead_letter) {
  return Params()
      .add(seq_in(dead_letter.id))
      .add(dead_letter.id)
      .add(std::string_view(dead_letter.tenant))
      .add(std::string_view(dead_letter.function))
      .add(std::string_view(dead_letter.code))
      .add_bytes(dead_letter.reason)
      .add(dead_letter.latest_run)
      .add(static_cast<std::int64_t>(dead_letter.count))
      .add(to_ms(dead_letter.opened_at))
      .add(to_ms(dead_letter.updated_at))
      .add_or_null(ms(dead_letter.acknowledged_at))
      .add(std::string_view(dead_letter.acknowledged_by));
}

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    words.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

}  // namespace

DeadLetter read_dead_letter(const Rows& rows, int row) {
  DeadLetter dead_letter;
  dead_letter.id = rows.uuid(row, 0);
  dead_letter.tenant = rows.bytes(row, 1);
  dead_letter.function = rows.bytes(row, 2);
  dead_letter.code = rows.bytes(row, 3);
  dead_letter.reason = rows.bytes(row, 4);
  dead_letter.latest_run = rows.uuid(row, 5);
  dead_letter.count = static_cast<std::uint64_t>(rows.integer(row, 6));
  dead_letter.opened_at = from_ms(rows.integer(row, 7));
  dead_letter.updated_at = from_ms(rows.integer(row, 8));
  dead_letter.acknowledged_at = instant(rows, row, 9);
  dead_letter.acknowledged_by = rows.bytes(row, 10);
  return dead_letter;
}

Statement insert_dead_letter(const DeadLetter& dead_letter) {
  return {sql().insert_dead_letter, dead_letter_params(dead_letter)};
}

Statement update_dead_letter(const DeadLetter& dead_letter) {
  return {sql().update_dead_letter, dead_letter_params(dead_letter)};
}

DeadLetterMember read_member(const Rows& rows, int row) {
  return {.run = rows.uuid(row, 0),
          .generation = static_cast<std::uint32_t>(rows.integer(row, 1)),
          .key = std::string(rows.bytes(row, 2)),
          .code = std::string(rows.bytes(row, 3)),
          .reason = std::string(rows.bytes(row, 4)),
          .attempts = static_cast<std::uint32_t>(rows.integer(row, 5)),
          .effect = static_cast<Effect>(rows.integer(row, 6)),
          .at = from_ms(rows.integer(row, 7))};
}

Statement put_member(const DeadLetterMember& member, const Uuid& dead_letter, std::string_view tenant) {
  return {sql().put_member, Params()
                                .add(seq_in(member.run))
                                .add(std::int64_t{member.generation})
                                .add(seq_in(dead_letter))
                                .add(member.run)
                                .add_bytes(member.key)
                                .add(std::string_view(member.code))
                                .add_bytes(member.reason)
                                .add(std::int64_t{member.attempts})
                                .add(static_cast<std::int64_t>(member.effect))
                                .add(to_ms(member.at))
                                .add(tenant)};
}

Statement insert_token(const TokenRecord& token) {
  std::string tenants;
  for (const std::string& tenant : token.tenants) tenants += (tenants.empty() ? "" : " ") + tenant;
  return {sql().insert_token, Params()
                                  .add(std::string_view(token.id))
                                  .add(token.secret_hash)
                                  .add(std::string_view(token.name))
                                  .add(static_cast<std::int64_t>(token.role))
                                  .add(std::string_view(tenants))
                                  .add(to_ms(token.created_at))
                                  .add_or_null(ms(token.expires_at))
                                  .add_or_null(ms(token.revoked_at))};
}

TokenRecord read_token(const Rows& rows, int row) {
  TokenRecord token;
  token.id = rows.bytes(row, 0);
  if (const auto hash = rows.bytes(row, 1); hash.size() == token.secret_hash.size())
    std::memcpy(token.secret_hash.data(), hash.data(), hash.size());
  token.name = rows.bytes(row, 2);
  token.role = static_cast<Role>(rows.integer(row, 3));
  token.tenants = split(rows.bytes(row, 4));
  token.created_at = from_ms(rows.integer(row, 5));
  token.expires_at = instant(rows, row, 6);
  token.revoked_at = instant(rows, row, 7);
  return token;
}

}  // namespace latchkey::pg
