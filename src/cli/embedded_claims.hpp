// EmbeddedClaims: claims in the data directory's own store, whose lock is taken per call and never kept while a command
// runs. When a server owns the store, that call goes to the server; the owner may change between any two calls.
//
// What a server would do behind the scenes is done with a claim: leases that are over are ended, old runs purged (a
// slice of each), and a claim that was suppressed is counted, once per process. From one thread.
#pragma once

#include <optional>

#include "cli/blocking_claims.hpp"
#include "cli/connection_options.hpp"
#include "cli/embedded_store.hpp"

namespace latchkey {

class EmbeddedClaims final : public BlockingClaims {
 public:
  EmbeddedClaims(ConnectionOptions place, Retention retention, Clock& clock, Random& random)
      : place_(std::move(place)), retention_(retention), clock_(clock), store_(place_.store_file(), clock, random) {}

  Result<ClaimReply> claim(const ClaimRequest& request) override;
  Result<std::vector<ExtendReply>> extend(const std::vector<ExtendRequest>& requests) override;
  Result<std::vector<SettleReply>> settle(const std::vector<SettleRequest>& requests) override;

 private:
  // `locally` on the store, or `remotely` on claims at the server that owns it.
  template <class T, class Locally, class Remotely>
  Result<T> decide(Locally locally, Remotely remotely);
  void tend(Store& store, const ClaimReply& reply, const std::string& caller);

  ConnectionOptions place_;
  const Retention retention_;
  Clock& clock_;
  EmbeddedStore store_;
  bool counted_ = false;
};

}  // namespace latchkey
