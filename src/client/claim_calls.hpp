// The requests of the claim verbs, as the HTTP API expects them. Pure.
#pragma once

#include <string>
#include <string_view>

#include "model/requests.hpp"

namespace latchkey {

struct ApiCall {
  std::string target;  // "/v1/runs/{id}/complete"
  std::string body;
};

ApiCall make_claim_call(const ClaimRequest& request);
ApiCall make_extend_call(const ExtendRequest& request);
ApiCall make_settle_call(const SettleRequest& request);

}  // namespace latchkey
