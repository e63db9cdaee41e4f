// Runs and dead letters, read from a server's answers: what api/run_json.hpp writes.
// Pure; safe from any thread.
#pragma once

#include <simdjson.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/run.hpp"
#include "store/records.hpp"

namespace latchkey::wire {

using Json = simdjson::dom::element;

// Members of an object; empty, none or 0 when they are missing or of another kind.
std::string text(Json object, std::string_view name);
std::optional<Instant> instant(Json object, std::string_view name);
std::uint64_t number(Json object, std::string_view name);
std::optional<Json> member(Json object, std::string_view name);

std::string quote(std::string_view text);
bool is_json(std::string_view text);

// REPLY_LOST when it has no id: the server speaks another language.
Result<Run> read_run(Json object);
Result<DeadLetter> read_dead_letter(Json object);
DeadLetterMember read_member(Json object);

}  // namespace latchkey::wire
