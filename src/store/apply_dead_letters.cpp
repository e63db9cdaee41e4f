// What a person does about a dead letter: moves of its members, each recorded with who and when.
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

bool stands_so(const Run& run, const Move& move) {
  if (std::holds_alternative<ResolveCompleted>(move)) return run.as<Completed>() != nullptr;
  if (std::holds_alternative<ResolveFailed>(move)) return run.as<Failed>() != nullptr;
  return run.is_open();
}

// The run was opened again since: this failure is no longer what stands, and whoever means it must be told.
MemberActionReply leave_alone(Applying with, const DeadLetterActionRequest& wish, const DeadLetterMember& member, const Run& run) {
  if (stands_so(run, wish.move)) return {member.run, false, {}};
  // It failed again, into the same entry: the wish is for that member.
  const auto latest = with.tables.find_member(wish.dead_letter, member.run);
  if (run.as<Failed>() && latest && latest->generation == run.generation) return {member.run, false, {}};
  return {member.run, false,
          Error{Code::MOVE_REFUSED,
                "the run was opened again since and is " + std::string(to_string(run.status())) + " now"}};
}

MemberActionReply move_member(Applying with, const DeadLetterActionRequest& wish, const DeadLetterMember& member) {
  const auto run = with.tables.find(member.run);
  if (!run) return {member.run, false, Error{Code::NOT_FOUND, "the run is gone"}};
  if (run->generation != member.generation && !LK_SEEDED(dead_letter_action_on_later_failure))
    return leave_alone(with, wish, member, *run);
  const MoveReply reply = apply_move(with, {std::nullopt, member.run, wish.move});
  if (const auto* error = std::get_if<Error>(&reply)) return {member.run, false, *error};
  const auto& moved = std::get<Moved>(reply);
  // A failure that a person lets stand changes no run, but it is a step.
  const bool stands = std::holds_alternative<ResolveFailed>(wish.move);
  const bool changed = (moved.changed || stands) && !LK_SEEDED(dead_letter_step_not_recorded) &&
                       with.tables.add_step(member, {kind_of(wish.move), wish.by, with.now, wish.note});
  return {member.run, changed || moved.changed, {}};
}

}  // namespace

std::optional<DeadLetterActionReply> apply_dead_letter_action(Applying with, const DeadLetterActionRequest& wish) {
  const auto dead_letter = with.tables.find_dead_letter(wish.tenant, wish.dead_letter);
  if (!dead_letter) return std::nullopt;
  DeadLetterActionReply moved;
  for (const RunId& id : wish.runs) {
    const auto member = with.tables.find_member(dead_letter->id, id);
    moved.members.push_back(member ? move_member(with, wish, *member)
                                   : MemberActionReply{id, false, Error{Code::NOT_FOUND, "no member of the dead letter"}});
  }
  if (!wish.runs.empty()) return moved;
  const auto slice =
      with.tables.list_members(dead_letter->id, read_position(wish.cursor).value_or(MemberPosition{}), wish.limit);
  for (const DeadLetterMember& member : slice) moved.members.push_back(move_member(with, wish, member));
  if (!slice.empty() && slice.size() == wish.limit) moved.next = write_position(position_of(slice.back()));
  return moved;
}

}  // namespace latchkey
