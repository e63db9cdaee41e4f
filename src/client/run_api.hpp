// RunApi: the verbs that a program needs to work with runs: a caller's claims, and an operator's lists and actions.
// EmbeddedApi implements them on an embedded store, ApiClient on a server's HTTP API.
//
// Every call blocks. A failed call returns an Error: NOT_FOUND, MOVE_REFUSED, or an error of the store or of the
// connection. One thread at a time.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "store/store.hpp"

namespace latchkey {

struct DeadLetterDetails {
  DeadLetter entry;
  std::vector<DeadLetterMember> members;
};

// An operator action on the members of a dead letter.
struct DeadLetterAction {
  std::vector<RunId> runs;  // empty: all members
  Move move;
  std::string note;
};
struct MembersMoved {
  std::int64_t changed = 0;
  std::int64_t unchanged = 0;  // already in the requested state
  std::int64_t refused = 0;
  std::vector<std::pair<std::string, std::string>> problems;  // of the first refused members: run and reason
};

struct TokenRequest {
  std::string name;
  Role role = Role::viewer;
  std::vector<std::string> tenants;    // empty: all
  std::optional<Duration> expires_in;  // none: never
};
struct NewToken {
  TokenRecord record;
  std::string secret;  // the whole token; it cannot be read again
};

class RunApi {
 public:
  virtual ~RunApi() = default;

  // The verbs of ClaimStore. Each request of extend() and settle() is independent of the others. A caller may repeat
  // a call after REPLY_LOST: a claim is recognized by its claim id, a settle by its fence.
  virtual Result<ClaimReply> claim(const ClaimRequest& request) = 0;
  virtual Result<std::vector<ExtendReply>> extend(const std::vector<ExtendRequest>& requests) = 0;
  virtual Result<std::vector<SettleReply>> settle(const std::vector<SettleRequest>& requests) = 0;

  virtual Result<Page> list_runs(const ListQuery& query) = 0;
  virtual Result<Run> find_run(RunId id) = 0;
  virtual Result<Run> move_run(RunId id, Move move) = 0;

  virtual Result<DeadLetterPage> list_dead_letters(const DeadLetterQuery& query) = 0;
  // With every member. A member that is added or removed during the call may or may not be included.
  virtual Result<DeadLetterDetails> find_dead_letter(Uuid id) = 0;
  // A server derives the actor from the token and ignores `actor`.
  virtual Result<DeadLetter> acknowledge(Uuid id, const std::string& actor) = 0;
  // `on_progress` receives the counts after each slice. A server executes the whole action in one call and reports no
  // progress. Repeating an interrupted action completes it.
  virtual Result<MembersMoved> move_members(Uuid letter, const DeadLetterAction& action, const std::string& actor,
                                            const std::function<void(const MembersMoved&)>& on_progress) = 0;

  // Tokens belong to a server: an embedded store returns SERVER_UNREACHABLE.
  virtual Result<NewToken> create_token(const TokenRequest& request) = 0;
  virtual Result<std::vector<TokenRecord>> list_tokens() = 0;
  virtual Result<void> revoke_token(const std::string& id) = 0;
};

// Lists pages until one contains a run, or the last page. One page of a store covers a limited number of runs, and
// possibly none of them matches the query.
Result<Page> find_page(RunApi& api, ListQuery query);

}  // namespace latchkey
