// Builds the claim from the body and the headers of POST /v1/runs. Pure, except that it reads time zone files.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "model/requests.hpp"
#include "wire/claim_json.hpp"

namespace latchkey::api {

// `token` is the id of the caller's token, `call_name` the Idempotency-Key header. `now` is the default of `at`.
Result<ClaimRequest> make_claim(wire::ClaimBody body, std::string tenant, std::string_view token,
                                std::optional<std::string_view> call_name, Instant now);

}  // namespace latchkey::api
