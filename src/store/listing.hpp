// Functions for lists and dead letters that the embedded back ends share.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "store/store.hpp"
#include "store/tables.hpp"

namespace latchkey {

// True if the run matches the query's filters. Cursor and limit are not considered.
bool is_listed(const Run& run, const ListQuery& query);
// The run without its input and result.
Run without_payloads(Run run);
// The bytes of its input and result.
std::size_t payload_bytes(const Run& run);
// True if the page is full: it has the query's number of runs, or at least one run and `bytes` reach the limit.
bool is_full(const Page& page, std::size_t bytes, const ListQuery& query);
// A cursor is the counter below which a list continues; an empty one starts at the newest run. read_cursor() requires
// is_cursor().
bool is_cursor(std::string_view cursor);
std::uint64_t read_cursor(std::string_view cursor);
std::string write_cursor(std::uint64_t counter);
// INVALID_ARGUMENT for a text that is not a cursor.
Error bad_cursor();
// The same for a position among the members of a dead letter. An empty cursor starts before the first member; none for
// a text that is not a cursor.
std::optional<MemberPosition> read_position(std::string_view cursor);
std::string write_position(const MemberPosition& position);

DeadLetterMember describe_member(const Run& failed);
DeadLetter open_entry(Uuid id, const Run& failed);
void add_to_entry(DeadLetter& entry, const DeadLetterMember& member);

}  // namespace latchkey
