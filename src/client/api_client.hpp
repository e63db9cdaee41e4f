// ApiClient: a RunApi on a server's HTTP API. Errors are those of the server and of ServerConnection.
#pragma once

#include "client/run_api.hpp"
#include "client/server_connection.hpp"

namespace latchkey {

class ApiClient final : public RunApi {
 public:
  // Reads the token now. Connects with the first call. INVALID_ARGUMENT when the address is no http:// URL.
  static Result<ApiClient> at(const std::string& address, const ServerLogin& login, Clock& clock);

  Result<ClaimReply> claim(const ClaimRequest& request) override;
  Result<std::vector<ExtendReply>> extend(const std::vector<ExtendRequest>& requests) override;
  Result<std::vector<SettleReply>> settle(const std::vector<SettleRequest>& requests) override;
  Result<Page> list_runs(const ListQuery& query) override;
  Result<Run> find_run(RunId id) override;
  Result<Run> move_run(RunId id, Move move) override;
  Result<DeadLetterPage> list_dead_letters(const DeadLetterQuery& query) override;
  Result<DeadLetterDetails> find_dead_letter(Uuid id) override;
  Result<DeadLetter> acknowledge(Uuid id, const std::string& actor) override;
  Result<MembersMoved> move_members(Uuid letter, const DeadLetterAction& action, const std::string& actor,
                                    const std::function<void(const MembersMoved&)>& on_progress) override;
  Result<NewToken> create_token(const TokenRequest& request) override;
  Result<std::vector<TokenRecord>> list_tokens() override;
  Result<void> revoke_token(const std::string& id) override;

 private:
  explicit ApiClient(ServerConnection server) : server_(std::move(server)) {}
  Result<ExtendReply> extend_one(const ExtendRequest& request);
  Result<SettleReply> settle_one(const SettleRequest& request);

  ServerConnection server_;
};

}  // namespace latchkey
