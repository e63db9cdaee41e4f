// Authentication: the principal behind a token, and the tenant of a request.
//
// TokenTable has all tokens in memory. It reads them from the store after every change through this server, and every
// second if other servers share the store (token_refresher.hpp). Secrets are compared by their SHA-256 in constant
// time. Each thread caches valid tokens under the hash of the whole header until the table changes; every call checks
// the expiry. Safe from any thread.
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
  std::string name;  // for people to read; the token's id when it has no name
  Role role = Role::viewer;
  std::vector<std::string> tenants;  // empty: all
  std::optional<Instant> expires_at;

  bool acts_for_all() const { return role == Role::admin && tenants.empty(); }
  bool acts_for(std::string_view tenant) const;
};

class TokenTable {
 public:
  explicit TokenTable(TokenStore& store) : store_(store) {}

  // Reads the store's tokens. Blocks. Call it at the start and after every change.
  Result<void> refresh();
  // Refuses this token until the next refresh() that succeeds, even if the store still has it.
  void forget(const std::string& id);
  // UNAUTHENTICATED without a valid "Bearer" token. The error does not say why the token is not valid.
  Result<std::shared_ptr<const Principal>> authenticate(std::optional<std::string_view> authorization, Instant now);

 private:
  struct Known {
    Digest secret_hash{};
    std::shared_ptr<const Principal> principal;
  };
  using Tokens = std::unordered_map<std::string, Known>;

  std::shared_ptr<const Principal> find_principal(std::string_view authorization) const;

  TokenStore& store_;
  std::mutex refreshing_;  // one refresh at a time, so that an older list never replaces a newer one
  mutable std::mutex mutex_;
  std::shared_ptr<const Tokens> tokens_ = std::make_shared<Tokens>();
  std::atomic<std::uint64_t> version_{0};  // unique in the process: two tables never have the same version
};

// The tenant of a request, named in the Latchkey-Tenant header, in the body or in the query. Two different names are
// INVALID_ARGUMENT. A tenant that the token may not act for is FORBIDDEN, whether or not the tenant exists. Without a
// name: the only tenant of the token; none for a token of all tenants; INVALID_ARGUMENT for a token of several.
Result<std::optional<std::string>> find_tenant(const Principal& principal, const http::Request& request,
                                               std::string_view named);

}  // namespace latchkey::api
