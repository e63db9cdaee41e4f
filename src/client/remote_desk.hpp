// RemoteOperatorClient: a server's API.
#pragma once

#include "client/desk.hpp"
#include "client/remote_server.hpp"

namespace latchkey {

class RemoteOperatorClient final : public OperatorClient {
 public:
  explicit RemoteOperatorClient(RemoteServer server) : server_(std::move(server)) {}

  Result<Page> list_runs(const ListQuery& query) override;
  Result<Run> find_run(RunId id) override;
  Result<Run> move_run(RunId id, Move move) override;
  Result<DeadLetterPage> list_dead_letters(const DeadLetterQuery& query) override;
  Result<DeadLetterWhole> find_dead_letter(Uuid id) override;
  Result<DeadLetter> acknowledge(Uuid id, const std::string& actor) override;
  Result<MembersMoved> move_members(Uuid letter, const DeadLetterAction& wish, const std::string& actor,
                                    const std::function<void(const MembersMoved&)>& so_far) override;
  Result<NewToken> create_token(const TokenWish& wish) override;
  Result<std::vector<TokenRecord>> list_tokens() override;
  Result<void> revoke_token(const std::string& id) override;

 private:
  RemoteServer server_;
};

}  // namespace latchkey
