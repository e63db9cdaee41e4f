// EmbeddedApi: a RunApi on the embedded store of a data directory. Each call acquires the store's lock, opens the
// store, works and closes it, so the store is never locked while a command runs.
//
// The claim verbs create the store if it is missing. When a server owns the store, they call that server instead; the
// owner may change between any two calls. A claim also does the maintenance of a server: it ends expired leases, purges
// old runs (one slice each) and counts a suppressed claim once per process.
//
// The other verbs create no store: without one they return NOT_FOUND. When a server owns the store, they return
// STORE_LOCKED. Tokens need a server. One thread at a time.
#pragma once

#include "client/embedded_store.hpp"
#include "client/run_api.hpp"
#include "client/server_connection.hpp"
#include "model/decide.hpp"

namespace latchkey {

struct EmbeddedApiSettings {
  std::string file;       // of the store
  ServerLogin login;      // for a server that owns the store; its tenant limits what the other verbs see
  Retention retention{};  // after which a claim purges runs
};

class EmbeddedApi final : public RunApi {
 public:
  EmbeddedApi(EmbeddedApiSettings settings, Clock& clock, Random& random)
      : settings_(std::move(settings)), clock_(clock), store_(settings_.file, clock, random) {}

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
  // Calls `on_store`, or `on_server` with a client of the server that owns the store.
  template <class T, class OnStore, class OnServer>
  Result<T> call_owner(OnStore on_store, OnServer on_server);
  // Calls `work` on a store that exists, after all deadlines that have passed are applied.
  template <class T, class Work>
  Result<T> use_existing(Work work);
  void run_maintenance(Store& store, const ClaimReply& reply, const std::string& caller);

  const std::optional<std::string>& tenant() const { return settings_.login.tenant; }

  const EmbeddedApiSettings settings_;
  Clock& clock_;
  EmbeddedStore store_;
  bool counted_ = false;  // a suppressed claim
};

}  // namespace latchkey
