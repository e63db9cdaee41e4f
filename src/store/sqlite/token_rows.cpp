#include "store/sqlite/token_rows.hpp"

#include <cstring>

#include "store/sqlite/sqlite_reader.hpp"

namespace latchkey {
namespace {

std::string join(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
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

std::optional<Instant> read_instant(const Statement& row, int column) {
  if (row.is_null(column)) return std::nullopt;
  return from_ms(row.integer(column));
}

}  // namespace

void write_token(Database& database, const TokenRecord& token) {
  const std::string tenants = join(token.tenants);
  Statement add = database.prepare(find_sql("add_token"));
  add.bind_text(1, token.id)
      .bind_blob(2, std::span<const unsigned char>(token.secret_hash))
      .bind_text(3, token.name)
      .bind(4, static_cast<int>(token.role))
      .bind_text(5, tenants)
      .bind(6, to_ms(token.created_at));
  if (token.expires_at) add.bind(7, to_ms(*token.expires_at));
  if (token.revoked_at) add.bind(8, to_ms(*token.revoked_at));
  add.run();
}

TokenRecord read_token(const Statement& row) {
  TokenRecord token;
  token.id = row.bytes(0);
  if (const auto hash = row.bytes(1); hash.size() == token.secret_hash.size())
    std::memcpy(token.secret_hash.data(), hash.data(), hash.size());
  token.name = row.bytes(2);
  token.role = static_cast<Role>(row.integer(3));
  token.tenants = split(row.bytes(4));
  token.created_at = from_ms(row.integer(5));
  token.expires_at = read_instant(row, 6);
  token.revoked_at = read_instant(row, 7);
  return token;
}

std::vector<TokenRecord> SqliteReader::list_tokens() {
  const std::lock_guard lock(mutex_);
  Statement query = database_.prepare(find_sql("list_tokens"));
  std::vector<TokenRecord> tokens;
  while (query.step()) tokens.push_back(read_token(query));
  return tokens;
}

}  // namespace latchkey
