// The body of POST /v1/runs. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "model/requests.hpp"
#include "wire/json_in.hpp"

namespace latchkey::wire {

struct ClaimBody {
  std::string function;
  std::string tenant;
  std::optional<std::string> key;
  // Instead of `key`: the parts from which keying/lock_key.hpp builds one.
  std::string grain;
  std::optional<std::string_view> entity;
  std::string time_zone;
  std::optional<Instant> at;

  std::optional<Guard> guard;
  OnDoubt on_doubt = OnDoubt::rerun;
  RetryPolicy retry;
  Duration lease = kDefaultLease;
  Duration window = kDefaultWindow;
  std::string input;  // as sent; empty when absent
  std::string caller;
  bool fingerprinted = true;  // false when the caller sent null
  std::optional<Fingerprint> fingerprint;
};

// Views in the result are valid until the thread parses its next object.
Result<ClaimBody> read_claim(const JsonObject& body);

}  // namespace latchkey::wire
