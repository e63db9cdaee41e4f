#include "cli/embedded_desk.hpp"

namespace latchkey {
namespace {

constexpr std::uint32_t kMembersMax = 500;
constexpr std::size_t kProblemsMax = 100;

std::unexpected<Error> nothing(const char* what, const Uuid& id) {
  return fail(Code::NOT_FOUND, std::string("there is no ") + what + " " + to_string(id));
}
std::unexpected<Error> needs_server() {
  return fail(Code::SERVER_UNREACHABLE, "tokens are for a server: start `latchkey serve`, or name one with --server");
}

}  // namespace

template <class T, class Work>
Result<T> EmbeddedDesk::use(Work work) {
  Result<T> reply = fail(Code::INTERNAL, "not asked");
  const auto owner = store_.use([&](Store& store) { reply = work(store); });
  if (!owner) return std::unexpected(owner.error());
  if (!*owner && !reply) return std::unexpected(store_.explain(reply.error()));
  if (*owner) return fail(Code::STORE_LOCKED, "the server at " + **owner + " took the store over; ask again");
  return reply;
}

Result<Page> EmbeddedDesk::list_runs(const ListQuery& query) {
  return use<Page>([&](Store& store) { return store.list(query); });
}

Result<Run> EmbeddedDesk::find_run(RunId id) {
  return use<Run>([&](Store& store) -> Result<Run> {
    auto run = store.find(tenant_, id);
    if (!run) return std::unexpected(run.error());
    if (!*run) return nothing("run", id);
    return **std::move(run);
  });
}

Result<Run> EmbeddedDesk::move_run(RunId id, Move move) {
  return use<Run>([&](Store& store) -> Result<Run> {
    auto reply = wait_for<MoveReply>([&](auto done) { store.move({tenant_, id, move}, std::move(done)); });
    if (!reply) return std::unexpected(reply.error());
    if (auto* error = std::get_if<Error>(&*reply)) {
      if (error->code == Code::NOT_FOUND) return nothing("run", id);
      return std::unexpected(std::move(*error));
    }
    return std::get<Moved>(*std::move(reply)).run;
  });
}

Result<DeadLetterPage> EmbeddedDesk::list_dead_letters(const DeadLetterQuery& query) {
  return use<DeadLetterPage>([&](Store& store) { return store.records().list_dead_letters(query); });
}

Result<DeadLetterWhole> EmbeddedDesk::find_dead_letter(Uuid id) {
  return use<DeadLetterWhole>([&](Store& store) -> Result<DeadLetterWhole> {
    auto entry = store.records().find_dead_letter(tenant_, id);
    if (!entry) return std::unexpected(entry.error());
    if (!*entry) return nothing("dead letter", id);
    auto members = store.records().list_members(id, kMembersMax);
    if (!members) return std::unexpected(members.error());
    return DeadLetterWhole{**std::move(entry), *std::move(members)};
  });
}

Result<DeadLetter> EmbeddedDesk::acknowledge(Uuid id, const std::string& actor) {
  return use<DeadLetter>([&](Store& store) -> Result<DeadLetter> {
    auto entry = store.records().acknowledge(tenant_, id, actor);
    if (!entry) return std::unexpected(entry.error());
    if (!*entry) return nothing("dead letter", id);
    return **std::move(entry);
  });
}

Result<MembersMoved> EmbeddedDesk::move_members(Uuid letter, const MembersWish& wish, const std::string& actor) {
  return use<MembersMoved>([&](Store& store) -> Result<MembersMoved> {
    LetterMove slice{
        .tenant = tenant_, .letter = letter, .runs = wish.runs, .move = wish.move, .by = actor, .note = wish.note};
    MembersMoved all;
    do {
      const auto moved = store.records().move_dead_letter(slice);
      if (!moved) return std::unexpected(moved.error());
      if (!*moved) return nothing("dead letter", letter);
      for (const MemberMoved& member : (*moved)->members) {
        (member.refused ? all.refused : member.changed ? all.changed : all.unchanged) += 1;
        if (member.refused && all.problems.size() < kProblemsMax)
          all.problems.emplace_back(to_string(member.run), to_string(*member.refused));
      }
      slice.cursor = (*moved)->next;
    } while (!slice.cursor.empty());
    return all;
  });
}

Result<NewToken> EmbeddedDesk::create_token(const TokenWish&) { return needs_server(); }
Result<std::vector<TokenRecord>> EmbeddedDesk::list_tokens() { return needs_server(); }
Result<void> EmbeddedDesk::revoke_token(const std::string&) { return needs_server(); }

}  // namespace latchkey
