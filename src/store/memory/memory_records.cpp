#include "store/apply.hpp"
#include "store/listing.hpp"
#include "store/memory/memory_store.hpp"

namespace latchkey {

Result<DeadLetterPage> MemoryStore::list_dead_letters(const DeadLetterQuery& query) {
  if (!is_cursor(query.cursor)) return std::unexpected(bad_cursor());
  const std::lock_guard lock(mutex_);
  DeadLetterPage page;
  if (query.limit == 0) return page;
  const std::uint64_t before = read_cursor(query.cursor);
  for (auto at = tables_.dead_letters.rbegin(); at != tables_.dead_letters.rend(); ++at) {
    const DeadLetter& entry = at->second.entry;
    if (uuid_counter(entry.id) >= before || (query.tenant && entry.tenant != *query.tenant) ||
        (!query.function.empty() && entry.function != query.function) ||
        (entry.acknowledged_at && !query.with_acknowledged))
      continue;
    if (page.entries.size() == query.limit) {
      page.next = write_cursor(uuid_counter(page.entries.back().id));
      break;
    }
    page.entries.push_back(entry);
  }
  return page;
}

Result<std::optional<DeadLetter>> MemoryStore::find_dead_letter(const std::optional<std::string>& tenant, Uuid id) {
  const std::lock_guard lock(mutex_);
  const auto at = tables_.dead_letters.find(id);
  if (at == tables_.dead_letters.end() || (tenant && at->second.entry.tenant != *tenant)) return std::nullopt;
  return at->second.entry;
}

Result<std::vector<DeadLetterMember>> MemoryStore::list_members(Uuid dead_letter, std::uint32_t limit,
                                                                MemberPosition after) {
  const std::lock_guard lock(mutex_);
  return tables_.list_members(dead_letter, after, limit);
}

Result<std::optional<DeadLetter>> MemoryStore::acknowledge(const std::optional<std::string>& tenant, Uuid id,
                                                           const std::string& actor) {
  const std::lock_guard lock(mutex_);
  const auto at = tables_.dead_letters.find(id);
  if (at == tables_.dead_letters.end() || (tenant && at->second.entry.tenant != *tenant)) return std::nullopt;
  DeadLetter& entry = at->second.entry;
  if (!entry.acknowledged_at) {
    entry.acknowledged_at = clock_.now();
    entry.acknowledged_by = actor;
  }
  return entry;
}

Result<std::optional<DeadLetterActionReply>> MemoryStore::act_on_dead_letter(const DeadLetterActionRequest& request) {
  const std::lock_guard lock(mutex_);
  return apply_dead_letter_action({tables_, random_, clock_.now()}, request);
}

Result<std::monostate> MemoryStore::add_token(const TokenRecord& token) {
  const std::lock_guard lock(mutex_);
  tables_.tokens.emplace(token.id, token);
  return std::monostate{};
}

Result<std::vector<TokenRecord>> MemoryStore::list_tokens() {
  const std::lock_guard lock(mutex_);
  std::vector<TokenRecord> found;
  for (const auto& [id, token] : tables_.tokens) found.push_back(token);
  return found;
}

Result<bool> MemoryStore::revoke_token(const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto at = tables_.tokens.find(id);
  if (at == tables_.tokens.end()) return false;
  if (!at->second.revoked_at) at->second.revoked_at = clock_.now();
  return true;
}

}  // namespace latchkey
