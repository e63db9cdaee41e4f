// The body of POST /v1/runs, and the claim that it and its headers make. Pure but for zone files.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "api/json_in.hpp"
#include "model/requests.hpp"

namespace latchkey::api {

struct ClaimBody {
  std::string function;
  std::string tenant;
  std::optional<std::string> key;
  // Or these, which build it; see keying/lock_key.hpp.
  std::string grain;
  std::optional<std::string_view> entity;
  std::string time_zone;
  std::optional<Instant> at;

  std::optional<Guard> guard;
  OnDoubt on_doubt = OnDoubt::rerun;
  RetryPolicy retry;
  Duration lease = kDefaultLease;
  Duration window = kDefaultWindow;
  std::string input;  // as sent; empty: none
  std::string caller;
  bool fingerprinted = true;  // false: the caller said null
  std::optional<Fingerprint> fingerprint;
};

// Views in it are good until the thread reads its next body.
Result<ClaimBody> read_claim(const http::Request& request);

// `token` is the id of the caller's, `call_name` the Idempotency-Key header. `now` is what `at` defaults to.
Result<ClaimRequest> make_claim(ClaimBody body, std::string tenant, std::string_view token,
                                std::optional<std::string_view> call_name, Instant now);

}  // namespace latchkey::api
