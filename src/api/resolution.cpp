#include "api/resolution.hpp"

namespace latchkey::api {
namespace {

constexpr std::size_t kNoteMax = 4096;

}  // namespace

Result<Move> make_move(const Resolution& resolution, Rerun rerun) {
  const auto wrong = [](const char* detail) { return fail(Code::INVALID_ARGUMENT, detail); };
  const auto& [outcome, result, note] = resolution;
  if (note.size() > kNoteMax) return wrong("`note` has more than 4096 bytes");
  if (outcome == "completed") return ResolveCompleted{result};
  const bool known = outcome == "failed" || (outcome == "rerun" && rerun == Rerun::allowed);
  if (!known && rerun == Rerun::allowed) return wrong("`outcome` must be completed, failed or rerun");
  if (!known) return wrong("`outcome` must be completed or failed; /retry opens the runs again");
  if (!result.empty()) return wrong("`result` is allowed only with the outcome `completed`");
  if (outcome == "failed") return ResolveFailed{note};
  return ResolveRerun{};
}

}  // namespace latchkey::api
