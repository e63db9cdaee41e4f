#include "store/listing.hpp"

#include <charconv>
#include <limits>

namespace latchkey {

bool is_listed(const Run& run, const ListQuery& query) {
  const RunHead& head = *run.head;
  return (!query.tenant || head.tenant == *query.tenant) &&
         (query.function.empty() || head.function == query.function) &&
         (!query.status || run.status() == *query.status) && (query.key.empty() || head.key == query.key) &&
         (!query.since || head.created_at >= *query.since);
}

std::uint64_t read_cursor(std::string_view cursor) {
  // Counters are 44 bits wide, and SQLite's rowids end at 2^63.
  std::uint64_t counter = std::numeric_limits<std::int64_t>::max();
  std::uint64_t parsed = 0;
  const auto [end, problem] = std::from_chars(cursor.data(), cursor.data() + cursor.size(), parsed, 16);
  if (problem == std::errc{} && end == cursor.data() + cursor.size() && parsed < counter) counter = parsed;
  return counter;
}

std::string write_cursor(std::uint64_t counter) {
  char text[17];
  const auto [end, problem] = std::to_chars(text, text + sizeof text, counter, 16);
  return {text, end};
}

DeadLetterMember describe_member(const Run& failed) {
  const Failed& how = std::get<Failed>(failed.state);
  return {.run = failed.id(),
          .generation = failed.generation,
          .key = failed.head->key,
          .code = how.code,
          .reason = failed.last_error,
          .attempts = failed.attempt,
          .effect = how.effect,
          .at = how.at};
}

DeadLetter open_entry(Uuid id, const Run& failed) {
  DeadLetter entry;
  entry.id = id;
  entry.tenant = failed.head->tenant;
  entry.function = failed.head->function;
  entry.opened_at = failed.settled_at();
  return entry;
}

void add_to_entry(DeadLetter& entry, const DeadLetterMember& member) {
  entry.code = member.code;
  entry.reason = member.reason;
  entry.latest_run = member.run;
  entry.updated_at = member.at;
  entry.count += 1;
}

}  // namespace latchkey
