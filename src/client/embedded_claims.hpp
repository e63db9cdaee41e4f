// EmbeddedClaims: claims in the data directory's own store, whose lock is taken per call and never kept while a command
// runs. When a server owns the store, that call goes to the server; the owner may change between any two calls.
//
// What a server would do behind the scenes is done with a claim: leases that are over are ended, old runs purged (a
// slice of each), and a claim that was suppressed is counted, once per process. From one thread.
#pragma once

#include <optional>

#include "client/blocking_claims.hpp"
#include "client/embedded_store.hpp"
#include "client/remote_server.hpp"
#include "model/decide.hpp"

namespace latchkey {

class EmbeddedClaims final : public BlockingClaims {
 public:
  EmbeddedClaims(std::string file, ServerLogin login, Retention retention, Clock& clock, Random& random)
      : login_(std::move(login)), retention_(retention), clock_(clock), store_(std::move(file), clock, random) {}

  Result<ClaimReply> claim(const ClaimRequest& request) override;
  Result<std::vector<ExtendReply>> extend(const std::vector<ExtendRequest>& requests) override;
  Result<std::vector<SettleReply>> settle(const std::vector<SettleRequest>& requests) override;

 private:
  // `locally` on the store, or `remotely` on claims at the server that owns it.
  template <class T, class Locally, class Remotely>
  Result<T> decide(Locally locally, Remotely remotely);
  void tend(Store& store, const ClaimReply& reply, const std::string& caller);

  const ServerLogin login_;
  const Retention retention_;
  Clock& clock_;
  EmbeddedStore store_;
  bool counted_ = false;
};

}  // namespace latchkey
