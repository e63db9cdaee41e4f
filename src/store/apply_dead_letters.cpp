// Operator actions on the members of a dead letter. Each action is recorded with the operator and the time.
#include "base/seeded_bug.hpp"
#include "store/apply.hpp"
#include "store/listing.hpp"

namespace latchkey {
namespace {

StepKind kind_of(const Move& move) {
  if (std::holds_alternative<ResolveCompleted>(move)) return StepKind::completed;
  if (std::holds_alternative<ResolveFailed>(move)) return StepKind::failed;
  return StepKind::retried;
}

bool has_result_of(const Run& run, const Move& move) {
  if (std::holds_alternative<ResolveCompleted>(move)) return run.as<Completed>() != nullptr;
  if (std::holds_alternative<ResolveFailed>(move)) return run.as<Failed>() != nullptr;
  return run.is_open();
}

// Replies to an action on a member whose run was opened again since it failed: the run is not changed.
MemberActionReply refuse_reopened(Applying with, const DeadLetterActionRequest& request, const DeadLetterMember& member,
                                  const Run& run) {
  if (has_result_of(run, request.move)) return {member.run, false, {}};
  // If the run failed again into the same dead letter, the action applies to its later member.
  const auto latest = with.tables.find_member(request.dead_letter, member.run);
  if (run.as<Failed>() && latest && latest->generation == run.generation) return {member.run, false, {}};
  return {member.run, false,
          Error{Code::MOVE_REFUSED,
                "the run was opened again since and is " + std::string(to_string(run.status())) + " now"}};
}

MemberActionReply act_on_member(Applying with, const DeadLetterActionRequest& request, const DeadLetterMember& member) {
  const auto run = with.tables.find(member.run);
  if (!run) return {member.run, false, Error{Code::NOT_FOUND, "the run is gone"}};
  if (run->generation != member.generation && !LK_SEEDED(action_on_later_failure))
    return refuse_reopened(with, request, member, *run);
  const MoveReply reply = apply_move(with, {std::nullopt, member.run, request.move});
  if (const auto* error = std::get_if<Error>(&reply)) return {member.run, false, *error};
  const auto& moved = std::get<Moved>(reply);
  // "Resolve as failed" does not change a failed run, but it is recorded as a step.
  const bool confirms_failure = std::holds_alternative<ResolveFailed>(request.move);
  const bool changed = (moved.changed || confirms_failure) && !LK_SEEDED(dead_letter_step_not_recorded) &&
                       with.tables.add_step(member, {kind_of(request.move), request.by, with.now, request.note});
  return {member.run, changed || moved.changed, {}};
}

}  // namespace

std::optional<DeadLetterActionReply> apply_dead_letter_action(Applying with, const DeadLetterActionRequest& request) {
  const auto dead_letter = with.tables.find_dead_letter(request.tenant, request.dead_letter);
  if (!dead_letter) return std::nullopt;
  DeadLetterActionReply reply;
  for (const RunId& id : request.runs) {
    const auto member = with.tables.find_member(dead_letter->id, id);
    reply.members.push_back(member
                                ? act_on_member(with, request, *member)
                                : MemberActionReply{id, false, Error{Code::NOT_FOUND, "no member of the dead letter"}});
  }
  if (!request.runs.empty()) return reply;
  const auto slice = with.tables.list_members(dead_letter->id, read_position(request.cursor).value_or(MemberPosition{}),
                                              request.limit);
  for (const DeadLetterMember& member : slice) reply.members.push_back(act_on_member(with, request, member));
  if (!slice.empty() && slice.size() == request.limit) reply.next = write_position(position_of(slice.back()));
  return reply;
}

}  // namespace latchkey
