#include "store/listing.hpp"

#include <charconv>
#include <limits>

namespace latchkey {
namespace {

// Counters are 54 bits wide, and SQLite's rowids end at 2^63.
constexpr std::uint64_t kNewest = std::numeric_limits<std::int64_t>::max();

std::optional<std::uint64_t> parse(std::string_view cursor) {
  std::uint64_t counter = 0;
  const auto [end, problem] = std::from_chars(cursor.data(), cursor.data() + cursor.size(), counter, 16);
  if (problem != std::errc{} || end != cursor.data() + cursor.size() || counter >= kNewest) return std::nullopt;
  return counter;
}

}  // namespace

bool is_listed(const Run& run, const ListQuery& query) {
  const RunHead& head = *run.head;
  return (!query.tenant || head.tenant == *query.tenant) &&
         (query.function.empty() || head.function == query.function) &&
         (!query.status || run.status() == *query.status) && (query.key.empty() || head.key == query.key) &&
         (!query.since || head.created_at >= *query.since);
}

Run without_payloads(Run run) {
  if (auto* completed = std::get_if<Completed>(&run.state)) completed->result.clear();
  if (run.head->input.empty()) return run;
  auto head = std::make_shared<RunHead>(*run.head);
  head->input.clear();
  run.head = std::move(head);
  return run;
}

std::size_t payload_bytes(const Run& run) {
  const auto* completed = run.as<Completed>();
  return run.head->input.size() + (completed ? completed->result.size() : 0);
}

bool is_full(const Page& page, std::size_t bytes, const ListQuery& query) {
  if (page.runs.size() >= query.limit) return true;
  return query.with_payloads && !page.runs.empty() && bytes >= query.payload_bytes_max;
}

bool is_cursor(std::string_view cursor) { return cursor.empty() || parse(cursor).has_value(); }

std::uint64_t read_cursor(std::string_view cursor) { return parse(cursor).value_or(kNewest); }

std::string write_cursor(std::uint64_t counter) {
  char text[17];
  const auto [end, problem] = std::to_chars(text, text + sizeof text, counter, 16);
  return {text, end};
}

Error bad_cursor() { return {Code::INVALID_ARGUMENT, "`cursor` must be the `next` of the page before"}; }

std::optional<MemberPosition> read_position(std::string_view cursor) {
  if (cursor.empty()) return MemberPosition{};
  const std::size_t dot = cursor.find('.');
  if (dot == cursor.npos) return std::nullopt;
  const auto counter = parse(cursor.substr(0, dot)), generation = parse(cursor.substr(dot + 1));
  if (!counter || !generation || *generation > std::numeric_limits<std::uint32_t>::max()) return std::nullopt;
  return MemberPosition{*counter, static_cast<std::uint32_t>(*generation)};
}

std::string write_position(const MemberPosition& position) {
  return write_cursor(position.counter) + "." + write_cursor(position.generation);
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
