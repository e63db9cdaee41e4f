#include <algorithm>

#include "migrate/migration_error.hpp"
#include "transfer/store_visitor.hpp"

namespace latchkey::transfer {
namespace {

// Small enough that a page of the largest inputs and results fits into memory.
constexpr std::uint32_t kPage = 250;

template <class T>
T require(Result<T> result) {
  if (!result) throw migrate::MigrationError(result.error().code, result.error().detail);
  return std::move(*result);
}

bool is_latest(Store& store, const Run& run) {
  const RunHead& head = *run.head;
  if (!head.guarded()) return false;
  const auto latest = require(store.find_latest({head.tenant, head.function, head.key, head.key_hash}));
  return latest && latest->id() == run.id();
}

void walk_runs(Store& store, StoreVisitor& into) {
  ListQuery query{.limit = kPage};
  do {
    Page page = require(store.list(query));
    for (Run& run : page.runs) {
      TransferredRun transferred{.has_key = is_latest(store, run),
                                 .duplicates = require(store.find_duplicates(run.id()))};
      transferred.run = std::move(run);
      into.add_run(transferred);
    }
    query.cursor = page.next;
  } while (!query.cursor.empty());
}

void walk_members(OperatorStore& store, const DeadLetter& dead_letter, StoreVisitor& into) {
  MemberPosition after;
  while (true) {
    const auto members = require(store.list_members(dead_letter.id, kPage, after));
    for (const DeadLetterMember& member : members) into.add_member(member, dead_letter);
    if (members.size() < kPage) return;
    after = position_of(members.back());
  }
}

void walk_dead_letters(OperatorStore& store, StoreVisitor& into) {
  DeadLetterQuery query{.with_acknowledged = true, .limit = kPage};
  do {
    const DeadLetterPage page = require(store.list_dead_letters(query));
    for (const DeadLetter& dead_letter : page.entries) {
      into.add_dead_letter(dead_letter);
      walk_members(store, dead_letter, into);
    }
    query.cursor = page.next;
  } while (!query.cursor.empty());
}

}  // namespace

void walk(Store& store, StoreVisitor& into) {
  walk_runs(store, into);
  walk_dead_letters(store, into);
  auto tokens = require(store.list_tokens());
  std::ranges::sort(tokens, {}, &TokenRecord::id);  // by bytes, because collations of databases differ
  for (const TokenRecord& token : tokens) into.add_token(token);
}

}  // namespace latchkey::transfer
