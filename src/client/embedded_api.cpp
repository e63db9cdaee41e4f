#include "client/embedded_api.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>

namespace latchkey {
namespace {

constexpr std::uint32_t kMembersPage = 500;
constexpr std::size_t kProblemsMax = 100;
constexpr std::uint32_t kSweepSlice = 1000;

std::unexpected<Error> not_found(const char* what, const Uuid& id) {
  return fail(Code::NOT_FOUND, std::string("there is no ") + what + " " + to_string(id));
}
std::unexpected<Error> needs_server() {
  return fail(Code::SERVER_UNREACHABLE, "tokens are for a server: start `latchkey serve`, or name one with --server");
}

// Applies the deadlines that have passed, because no server does it. Errors are ignored: reads work on a full disk.
void apply_deadlines(Store& store) {
  for (bool more = true; more;) {
    const auto swept = wait_for<Swept>([&](auto done) { store.sweep(kSweepSlice, std::move(done)); });
    more = swept && swept->more;
  }
}

}  // namespace

template <class T, class Work>
Result<T> EmbeddedApi::use_existing(Work work) {
  // An operator's command creates no store: the path may be mistyped.
  if (::access(settings_.file.c_str(), F_OK) != 0 && (errno == ENOENT || errno == ENOTDIR))
    return fail(Code::NOT_FOUND, "there is no store at " + settings_.file);
  Result<T> reply = fail(Code::INTERNAL, "the store was not called");
  const auto owner = store_.use([&](Store& store) {
    apply_deadlines(store);
    reply = work(store);
  });
  if (!owner) return std::unexpected(owner.error());
  if (!*owner && !reply) return std::unexpected(store_.explain(reply.error()));
  if (*owner) return fail(Code::STORE_LOCKED, "the server at " + **owner + " took the store over; try again");
  return reply;
}

Result<Page> EmbeddedApi::list_runs(const ListQuery& query) {
  return use_existing<Page>([&](Store& store) { return store.list(query); });
}

Result<Run> EmbeddedApi::find_run(RunId id) {
  return use_existing<Run>([&](Store& store) -> Result<Run> {
    auto run = store.find(tenant(), id);
    if (!run) return std::unexpected(run.error());
    if (!*run) return not_found("run", id);
    return **std::move(run);
  });
}

Result<Run> EmbeddedApi::move_run(RunId id, Move move) {
  return use_existing<Run>([&](Store& store) -> Result<Run> {
    auto reply = wait_for<MoveReply>([&](auto done) { store.move({tenant(), id, move}, std::move(done)); });
    if (!reply) return std::unexpected(reply.error());
    if (auto* error = std::get_if<Error>(&*reply)) {
      if (error->code == Code::NOT_FOUND) return not_found("run", id);
      return std::unexpected(std::move(*error));
    }
    return std::get<Moved>(*std::move(reply)).run;
  });
}

Result<DeadLetterPage> EmbeddedApi::list_dead_letters(const DeadLetterQuery& query) {
  return use_existing<DeadLetterPage>([&](Store& store) { return store.list_dead_letters(query); });
}

// Each page is a call of its own, so that other processes may use the store in between.
Result<DeadLetterDetails> EmbeddedApi::find_dead_letter(Uuid id) {
  auto entry = use_existing<DeadLetter>([&](Store& store) -> Result<DeadLetter> {
    auto found = store.find_dead_letter(tenant(), id);
    if (!found) return std::unexpected(found.error());
    if (!*found) return not_found("dead letter", id);
    return **std::move(found);
  });
  if (!entry) return std::unexpected(entry.error());
  DeadLetterDetails details{*std::move(entry), {}};
  using Members = std::vector<DeadLetterMember>;
  for (;;) {
    const MemberPosition after = details.members.empty() ? MemberPosition{} : position_of(details.members.back());
    auto page = use_existing<Members>([&](Store& store) { return store.list_members(id, kMembersPage, after); });
    if (!page) return std::unexpected(page.error());
    std::ranges::move(*page, std::back_inserter(details.members));
    if (page->size() < kMembersPage) return details;
  }
}

Result<DeadLetter> EmbeddedApi::acknowledge(Uuid id, const std::string& actor) {
  return use_existing<DeadLetter>([&](Store& store) -> Result<DeadLetter> {
    auto entry = store.acknowledge(tenant(), id, actor);
    if (!entry) return std::unexpected(entry.error());
    if (!*entry) return not_found("dead letter", id);
    return **std::move(entry);
  });
}

// Each slice is a call of its own, so that other processes may use the store in between.
Result<MembersMoved> EmbeddedApi::move_members(Uuid letter, const DeadLetterAction& action, const std::string& actor,
                                               const std::function<void(const MembersMoved&)>& on_progress) {
  DeadLetterActionRequest slice{.tenant = tenant(),
                                .dead_letter = letter,
                                .runs = action.runs,
                                .move = action.move,
                                .by = actor,
                                .note = action.note};
  MembersMoved all;
  do {
    const auto moved = use_existing<DeadLetterActionReply>([&](Store& store) -> Result<DeadLetterActionReply> {
      auto part = store.act_on_dead_letter(slice);
      if (!part) return std::unexpected(part.error());
      if (!*part) return not_found("dead letter", letter);
      return **std::move(part);
    });
    if (!moved) return std::unexpected(moved.error());
    for (const MemberActionReply& member : moved->members) {
      (member.refused ? all.refused : member.changed ? all.changed : all.unchanged) += 1;
      if (member.refused && all.problems.size() < kProblemsMax)
        all.problems.emplace_back(to_string(member.run), to_string(*member.refused));
    }
    slice.cursor = moved->next;
    on_progress(all);
  } while (!slice.cursor.empty());
  return all;
}

Result<NewToken> EmbeddedApi::create_token(const TokenRequest&) { return needs_server(); }
Result<std::vector<TokenRecord>> EmbeddedApi::list_tokens() { return needs_server(); }
Result<void> EmbeddedApi::revoke_token(const std::string&) { return needs_server(); }

}  // namespace latchkey
