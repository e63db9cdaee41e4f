#include <algorithm>
#include <ranges>

#include "store/listing.hpp"
#include "store/memory/memory_tables.hpp"

namespace latchkey {

Uuid MemoryTables::add_dead_letter(const Run& run) {
  const DeadLetterMember member = describe_member(run);
  for (auto& [id, dead_letter] : dead_letters) {
    if (dead_letter.entry.acknowledged_at || dead_letter.entry.tenant != run.head->tenant ||
        dead_letter.entry.function != run.head->function)
      continue;
    add_to_entry(dead_letter.entry, member);
    dead_letter.members.push_back(member);
    return id;
  }
  StoredDeadLetter dead_letter{open_entry(next_id(member.at), run), {member}};
  add_to_entry(dead_letter.entry, member);
  const Uuid id = dead_letter.entry.id;
  dead_letters.emplace(id, std::move(dead_letter));
  return id;
}

bool MemoryTables::has_unacknowledged_dead_letter(RunId run) {
  for (const auto& [id, dead_letter] : dead_letters)
    if (!dead_letter.entry.acknowledged_at)
      for (const DeadLetterMember& member : dead_letter.members)
        if (member.run == run) return true;
  return false;
}

std::optional<Uuid> MemoryTables::dead_letter_of(const Run& run) {
  if (!run.as<Failed>()) return std::nullopt;
  for (const auto& [id, dead_letter] : dead_letters)
    for (const DeadLetterMember& member : dead_letter.members)
      if (member.run == run.id() && member.generation == run.generation) return id;
  return std::nullopt;
}

std::optional<DeadLetter> MemoryTables::find_dead_letter(const std::optional<std::string>& tenant, Uuid id) {
  const auto at = dead_letters.find(id);
  if (at == dead_letters.end() || (tenant && at->second.entry.tenant != *tenant)) return std::nullopt;
  return at->second.entry;
}

std::vector<DeadLetterMember> MemoryTables::list_members(Uuid dead_letter, MemberPosition after, std::uint32_t limit) {
  const auto at = dead_letters.find(dead_letter);
  if (at == dead_letters.end()) return {};
  std::vector<DeadLetterMember> members = at->second.members;
  std::erase_if(members, [&](const DeadLetterMember& member) { return position_of(member) <= after; });
  std::ranges::sort(members, {}, position_of);
  if (members.size() > limit) members.resize(limit);
  return members;
}

std::optional<DeadLetterMember> MemoryTables::find_member(Uuid dead_letter, RunId run) {
  const auto at = dead_letters.find(dead_letter);
  if (at == dead_letters.end()) return std::nullopt;
  std::optional<DeadLetterMember> found;
  for (const DeadLetterMember& member : at->second.members)
    if (member.run == run && (!found || member.generation > found->generation)) found = member;
  return found;
}

bool MemoryTables::add_step(const DeadLetterMember& member, const MemberStep& step) {
  for (auto& [id, dead_letter] : dead_letters)
    for (DeadLetterMember& known : dead_letter.members) {
      if (known.run != member.run || known.generation != member.generation) continue;
      if (std::ranges::find(known.steps, step.kind, &MemberStep::kind) != known.steps.end()) return false;
      known.steps.push_back(step);
      std::ranges::sort(known.steps, {}, &MemberStep::kind);
      return true;
    }
  return false;
}

StoreStats MemoryTables::stats() const {
  StoreStats stats = ready_index_.stats();
  stats.unacknowledged_dead_letters = static_cast<std::uint64_t>(std::ranges::count_if(
      dead_letters, [](const auto& dead_letter) { return !dead_letter.second.entry.acknowledged_at; }));
  return stats;
}

void MemoryTables::erase_members(RunId run) {
  for (auto at = dead_letters.begin(); at != dead_letters.end();) {
    auto& members = at->second.members;
    const auto erased = std::erase_if(members, [&](const DeadLetterMember& member) { return member.run == run; });
    const bool over = erased > 0 && members.empty() && at->second.entry.acknowledged_at;
    at = over ? dead_letters.erase(at) : std::next(at);
  }
}

}  // namespace latchkey
