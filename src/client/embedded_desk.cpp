#include "client/embedded_desk.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>

namespace latchkey {
namespace {

constexpr std::uint32_t kMembersPage = 500;
constexpr std::size_t kProblemsMax = 100;
constexpr std::uint32_t kSweptAtOnce = 1000;

std::unexpected<Error> nothing(const char* what, const Uuid& id) {
  return fail(Code::NOT_FOUND, std::string("there is no ") + what + " " + to_string(id));
}
std::unexpected<Error> needs_server() {
  return fail(Code::SERVER_UNREACHABLE, "tokens are for a server: start `latchkey serve`, or name one with --server");
}

// Without a server nobody else does: what time has ended is written down before anything is looked at or decided.
// Errors are passed over: a full disk keeps nobody from looking.
void pass_time(Store& store) {
  for (bool more = true; more;) {
    const auto swept = wait_for<Swept>([&](auto done) { store.sweep(kSweptAtOnce, std::move(done)); });
    more = swept && swept->more;
  }
}

}  // namespace

template <class T, class Work>
Result<T> EmbeddedOperatorClient::use(Work work) {
  // Whoever looks makes no store: the path may be mistyped.
  if (::access(file_.c_str(), F_OK) != 0 && (errno == ENOENT || errno == ENOTDIR))
    return fail(Code::NOT_FOUND, "there is no store at " + file_);
  Result<T> reply = fail(Code::INTERNAL, "not asked");
  const auto owner = store_.use([&](Store& store) {
    pass_time(store);
    reply = work(store);
  });
  if (!owner) return std::unexpected(owner.error());
  if (!*owner && !reply) return std::unexpected(store_.explain(reply.error()));
  if (*owner) return fail(Code::STORE_LOCKED, "the server at " + **owner + " took the store over; ask again");
  return reply;
}

Result<Page> EmbeddedOperatorClient::list_runs(const ListQuery& query) {
  return use<Page>([&](Store& store) { return store.list(query); });
}

Result<Run> EmbeddedOperatorClient::find_run(RunId id) {
  return use<Run>([&](Store& store) -> Result<Run> {
    auto run = store.find(tenant_, id);
    if (!run) return std::unexpected(run.error());
    if (!*run) return nothing("run", id);
    return **std::move(run);
  });
}

Result<Run> EmbeddedOperatorClient::move_run(RunId id, Move move) {
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

Result<DeadLetterPage> EmbeddedOperatorClient::list_dead_letters(const DeadLetterQuery& query) {
  return use<DeadLetterPage>([&](Store& store) { return store.list_dead_letters(query); });
}

// A page at a time, so that others may use the store in between.
Result<DeadLetterWhole> EmbeddedOperatorClient::find_dead_letter(Uuid id) {
  auto entry = use<DeadLetter>([&](Store& store) -> Result<DeadLetter> {
    auto found = store.find_dead_letter(tenant_, id);
    if (!found) return std::unexpected(found.error());
    if (!*found) return nothing("dead letter", id);
    return **std::move(found);
  });
  if (!entry) return std::unexpected(entry.error());
  DeadLetterWhole whole{*std::move(entry), {}};
  using Members = std::vector<DeadLetterMember>;
  for (;;) {
    const MemberPosition after = whole.members.empty() ? MemberPosition{} : position_of(whole.members.back());
    auto page = use<Members>([&](Store& store) { return store.list_members(id, kMembersPage, after); });
    if (!page) return std::unexpected(page.error());
    std::ranges::move(*page, std::back_inserter(whole.members));
    if (page->size() < kMembersPage) return whole;
  }
}

Result<DeadLetter> EmbeddedOperatorClient::acknowledge(Uuid id, const std::string& actor) {
  return use<DeadLetter>([&](Store& store) -> Result<DeadLetter> {
    auto entry = store.acknowledge(tenant_, id, actor);
    if (!entry) return std::unexpected(entry.error());
    if (!*entry) return nothing("dead letter", id);
    return **std::move(entry);
  });
}

// A slice at a time, so that others may use the store in between. Broken off, it is simply asked for again.
Result<MembersMoved> EmbeddedOperatorClient::move_members(Uuid letter, const DeadLetterAction& wish,
                                                          const std::string& actor,
                                                          const std::function<void(const MembersMoved&)>& so_far) {
  LetterMove slice{
      .tenant = tenant_, .letter = letter, .runs = wish.runs, .move = wish.move, .by = actor, .note = wish.note};
  MembersMoved all;
  do {
    const auto moved = use<LetterMoved>([&](Store& store) -> Result<LetterMoved> {
      auto part = store.move_dead_letter(slice);
      if (!part) return std::unexpected(part.error());
      if (!*part) return nothing("dead letter", letter);
      return **std::move(part);
    });
    if (!moved) return std::unexpected(moved.error());
    for (const MemberMoved& member : moved->members) {
      (member.refused ? all.refused : member.changed ? all.changed : all.unchanged) += 1;
      if (member.refused && all.problems.size() < kProblemsMax)
        all.problems.emplace_back(to_string(member.run), to_string(*member.refused));
    }
    slice.cursor = moved->next;
    so_far(all);
  } while (!slice.cursor.empty());
  return all;
}

Result<NewToken> EmbeddedOperatorClient::create_token(const TokenWish&) { return needs_server(); }
Result<std::vector<TokenRecord>> EmbeddedOperatorClient::list_tokens() { return needs_server(); }
Result<void> EmbeddedOperatorClient::revoke_token(const std::string&) { return needs_server(); }

}  // namespace latchkey
