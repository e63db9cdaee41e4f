// A run as the API shows it. Members that say nothing in the run's state are left out.
#pragma once

#include <string>

#include "model/run.hpp"
#include "store/duplicates.hpp"
#include "store/records.hpp"

namespace latchkey::api {

// Which of input and result are written.
enum class Payloads : std::uint8_t { none, result, all };

// `progress`: what its owner said last, as JSON; empty: nothing.
void append_run(std::string& out, const Run& run, Payloads payloads, std::string_view progress = {});
std::string to_json(const Run& run, Payloads payloads, std::string_view progress = {});

// {"counts":[{"reason","count","first","last"}],"latest":[{"at","reason","caller"}]}
void append_suppressed(std::string& out, const Duplicates& suppressed);

struct MembersPage {
  std::vector<DeadLetterMember> members;
  std::string next;  // empty at the end
};
// With its members where they are given.
void append_dead_letter(std::string& out, const DeadLetter& entry, const MembersPage* page);
// Never the secret's hash.
void append_token(std::string& out, const TokenRecord& token, std::string_view whole_token = {});

}  // namespace latchkey::api
