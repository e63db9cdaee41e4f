// Pieces of listing and dead letters that every embedded back end shares.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "store/store.hpp"
#include "store/tables.hpp"

namespace latchkey {

// Whether a run belongs on the query's page, cursor and limit aside.
bool is_listed(const Run& run, const ListQuery& query);
// The run as a page shows it that is without payloads.
Run without_payloads(Run run);
// How many bytes of them it has.
std::size_t payload_bytes(const Run& run);
// Whether no other run goes on a page that has some and so many bytes of payloads.
bool is_full(const Page& page, std::size_t bytes, const ListQuery& query);
// A cursor says: go on below this counter. An empty one starts at the newest. Ask is_cursor() first.
bool is_cursor(std::string_view cursor);
std::uint64_t read_cursor(std::string_view cursor);
std::string write_cursor(std::uint64_t counter);
// INVALID_ARGUMENT, for a cursor that is none of ours.
Error bad_cursor();
// The same for a place among a dead letter's members: an empty one starts before the first, none is ours otherwise.
std::optional<MemberPosition> read_position(std::string_view cursor);
std::string write_position(const MemberPosition& place);

DeadLetterMember describe_member(const Run& failed);
DeadLetter open_entry(Uuid id, const Run& failed);
void add_to_entry(DeadLetter& entry, const DeadLetterMember& member);

}  // namespace latchkey
