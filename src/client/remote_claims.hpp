// RemoteClaims: claims through a server's API. A caller may retry every call after REPLY_LOST: a claim carries its
// claim id and a settle its fence. Not safe from two threads.
#pragma once

#include "client/blocking_claims.hpp"
#include "client/remote_server.hpp"

namespace latchkey {

class RemoteClaims final : public BlockingClaims {
 public:
  explicit RemoteClaims(RemoteServer server) : server_(std::move(server)) {}

  Result<ClaimReply> claim(const ClaimRequest& request) override;
  Result<std::vector<ExtendReply>> extend(const std::vector<ExtendRequest>& requests) override;
  Result<std::vector<SettleReply>> settle(const std::vector<SettleRequest>& requests) override;

 private:
  Result<ServerReply> call(const std::string& target, const std::string& body,
                           std::vector<http::ClientHeader> headers = {});
  Result<ExtendReply> extend_one(const ExtendRequest& request);
  Result<SettleReply> settle_one(const SettleRequest& request);

  RemoteServer server_;
};

}  // namespace latchkey
