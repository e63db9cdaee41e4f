// OperatorClient: what a person looks up and decides, wherever the runs are. Two of them: the embedded store, owned for
// one call at a time, and a server. Calls block. Errors: NOT_FOUND, MOVE_REFUSED, and those of store and connection.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "store/store.hpp"

namespace latchkey {

struct DeadLetterWhole {
  DeadLetter entry;
  std::vector<DeadLetterMember> members;
};
// What is to be done about a dead letter's members, all or those named.
struct DeadLetterAction {
  std::vector<RunId> runs;
  Move move;
  std::string note;
};
struct MembersMoved {
  std::int64_t changed = 0;
  std::int64_t unchanged = 0;  // it stood so already
  std::int64_t refused = 0;
  std::vector<std::pair<std::string, std::string>> problems;  // the first of those refused: run and why
};
struct TokenWish {
  std::string name;
  Role role = Role::viewer;
  std::vector<std::string> tenants;
  std::optional<Duration> expires_in;
};
struct NewToken {
  TokenRecord record;
  std::string secret;  // the whole token, shown this once
};

class OperatorClient {
 public:
  virtual ~OperatorClient() = default;
  virtual Result<Page> list_runs(const ListQuery& query) = 0;
  virtual Result<Run> find_run(RunId id) = 0;
  virtual Result<Run> move_run(RunId id, Move move) = 0;
  virtual Result<DeadLetterPage> list_dead_letters(const DeadLetterQuery& query) = 0;
  // With every member; those that come or go meanwhile may or may not be in it.
  virtual Result<DeadLetterWhole> find_dead_letter(Uuid id) = 0;
  virtual Result<DeadLetter> acknowledge(Uuid id, const std::string& actor) = 0;
  // `so_far` is told now and then, where it is done in parts: a server says nothing before the end.
  virtual Result<MembersMoved> move_members(Uuid letter, const DeadLetterAction& wish, const std::string& actor,
                                            const std::function<void(const MembersMoved&)>& so_far) = 0;
  // A server only: SERVER_UNREACHABLE from the embedded store.
  virtual Result<NewToken> create_token(const TokenWish& wish) = 0;
  virtual Result<std::vector<TokenRecord>> list_tokens() = 0;
  virtual Result<void> revoke_token(const std::string& id) = 0;
};

}  // namespace latchkey
