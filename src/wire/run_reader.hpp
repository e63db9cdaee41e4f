// Reads runs and dead letters from a server's replies, as run_json.hpp writes them. Lenient: a client must accept the
// members that a newer server adds. Pure; safe from any thread.
#pragma once

#include <simdjson.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/run.hpp"
#include "store/dead_letters.hpp"

namespace latchkey::wire {

using Json = simdjson::dom::element;

// Members of an object. The result is empty, none or 0 when the member is missing or has another type.
std::string text(Json object, std::string_view name);
std::optional<Instant> instant(Json object, std::string_view name);
std::uint64_t number(Json object, std::string_view name);
std::optional<Json> member(Json object, std::string_view name);

// The text as a JSON string with its quotes.
std::string quote(std::string_view text);

// REPLY_LOST when the object has no id: the server is not a Latchkey server, or is incompatible.
Result<Run> read_run(Json object);
Result<DeadLetter> read_dead_letter(Json object);
DeadLetterMember read_member(Json object);

}  // namespace latchkey::wire
