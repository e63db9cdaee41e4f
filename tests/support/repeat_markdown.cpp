#include "support/repeat_markdown.hpp"

#include "model/repeat_table.hpp"

namespace latchkey {
namespace {

std::string_view answer_text(ClaimAnswer answer) {
  switch (answer) {
    case ClaimAnswer::new_run:
      return "new run";
    case ClaimAnswer::same_run:
      return "same run, attempt + 1";
    case ClaimAnswer::new_generation:
      return "same run, generation + 1";
    case ClaimAnswer::replay:
      return "replay";
    case ClaimAnswer::busy:
    case ClaimAnswer::not_due:
    case ClaimAnswer::in_doubt:
      break;
  }
  return "";
}

std::string_view answer_text(EnqueueAnswer answer) {
  switch (answer) {
    case EnqueueAnswer::new_run:
      return "new run";
    case EnqueueAnswer::new_generation:
      return "same run queued, generation + 1";
    case EnqueueAnswer::duplicate:
      break;
  }
  return "`duplicate`";
}

std::string claim_text(const RepeatRow& row) {
  std::string text = std::to_string(row.status) + " ";
  text += row.code.empty() ? std::string(answer_text(row.claim)) : "`" + std::string(row.code) + "`";
  if (row.retry_after) text += ", Retry-After";
  return text;
}

}  // namespace

std::string write_repeat_table() {
  std::string text =
      "| the key's latest run is | a claim gets | an enqueue gets | another fingerprint |\n|---|---|---|---|\n";
  for (const RepeatRow& row : kRepeatTable) {
    text +=
        "| " + std::string(row.text) + " | " + claim_text(row) + " | " + std::string(answer_text(row.enqueue)) + " | ";
    text += row.fingerprint_checked ? "422 `KEY_REUSED` |\n" : "not compared |\n";
  }
  return text;
}

}  // namespace latchkey
