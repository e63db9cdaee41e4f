// EmbeddedOperatorClient: the store in the data directory. If a server takes it over between two calls: STORE_LOCKED.
// None is made: where there is no store, everything is NOT_FOUND.
#pragma once

#include "client/desk.hpp"
#include "client/embedded_store.hpp"

namespace latchkey {

class EmbeddedOperatorClient final : public OperatorClient {
 public:
  EmbeddedOperatorClient(std::string file, std::optional<std::string> tenant, Clock& clock, Random& random)
      : tenant_(std::move(tenant)), file_(std::move(file)), store_(file_, clock, random) {}

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
  template <class T, class Work>
  Result<T> use(Work work);

  std::optional<std::string> tenant_;
  std::string file_;
  EmbeddedStore store_;
};

}  // namespace latchkey
