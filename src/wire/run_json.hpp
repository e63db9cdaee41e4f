// Runs, dead letters and tokens as the API writes them. Members without a meaning in the run's state are omitted.
#pragma once

#include <string>

#include "model/run.hpp"
#include "store/dead_letters.hpp"
#include "store/token_store.hpp"
#include "store/duplicates.hpp"

namespace latchkey::wire {

// Selects which of input and result are written.
enum class Payloads : std::uint8_t { none, result, all };

// `progress` is the latest progress that the lease owner reported, as JSON; empty when there is none.
void append_run(std::string& out, const Run& run, Payloads payloads, std::string_view progress = {});
std::string to_json(const Run& run, Payloads payloads, std::string_view progress = {});

// {"counts":[{"reason","count","first","last"}],"latest":[{"at","reason","caller"}]}
void append_suppressed(std::string& out, const Duplicates& suppressed);

struct MembersPage {
  std::vector<DeadLetterMember> members;
  std::string next;  // empty on the last page
};
// `page` may be null: then the entry is written without members.
void append_dead_letter(std::string& out, const DeadLetter& entry, const MembersPage* page);
// Never writes the hash of the secret.
void append_token(std::string& out, const TokenRecord& token, std::string_view whole_token = {});

}  // namespace latchkey::wire
