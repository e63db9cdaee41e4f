// Who is calling, and what they may do.
//
// TokenTable holds all tokens in memory and is read anew after every change made through this server, and every second
// where others share the store (token_refresher.hpp). Secrets are
// compared by their SHA-256 in constant time. A token that was found good is remembered per thread under the hash of
// the whole header, until the table changes; expiry is checked at every call. Safe from any thread.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/error.hpp"
#include "http/message.hpp"
#include "store/token_store.hpp"

namespace latchkey::api {

struct Principal {
  std::string token_id;
  std::string name;  // for people; the token's id when it has none
  Role role = Role::viewer;
  std::vector<std::string> tenants;  // empty: all
  std::optional<Instant> expires_at;

  bool acts_for_all() const { return role == Role::admin && tenants.empty(); }
  bool acts_for(std::string_view tenant) const;
};

class TokenTable {
 public:
  explicit TokenTable(TokenStore& store) : store_(store) {}

  // Reads the store's tokens. Blocks; to be called at the start and after every change.
  Result<void> refresh();
  // Refuses this token from now on, whatever the store says, until the next refresh() that succeeds.
  void forget(const std::string& id);
  // UNAUTHENTICATED without a good "Bearer" token; it is not told what is wrong with it.
  Result<std::shared_ptr<const Principal>> authenticate(std::optional<std::string_view> authorization, Instant now);

 private:
  struct Known {
    Digest secret_hash{};
    std::shared_ptr<const Principal> principal;
  };
  using Tokens = std::unordered_map<std::string, Known>;

  std::shared_ptr<const Principal> find_principal(std::string_view authorization) const;

  TokenStore& store_;
  std::mutex refreshing_;  // one at a time, so that an older list never replaces a newer one
  mutable std::mutex mutex_;
  std::shared_ptr<const Tokens> tokens_ = std::make_shared<Tokens>();
  std::atomic<std::uint64_t> version_{0};  // of the process: no two tables ever have the same
};

// The tenant that a call is for. Named in the Latchkey-Tenant header, in the body or in the query; two different names
// are INVALID_ARGUMENT, one the token may not act for is FORBIDDEN, whether or not it exists. Unnamed: the token's only
// tenant; none for a token of all tenants; INVALID_ARGUMENT for one of several.
Result<std::optional<std::string>> find_tenant(const Principal& principal, const http::Request& request,
                                               std::string_view named);

}  // namespace latchkey::api
