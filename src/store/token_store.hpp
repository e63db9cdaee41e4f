// TokenStore: the access tokens of the HTTP API.
//
// Every call is one short transaction and blocks its caller. Any thread may call.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/error.hpp"
#include "base/sha256.hpp"
#include "base/time.hpp"

namespace latchkey {

enum class Role : std::uint8_t { viewer, service, org_admin, admin };
std::string_view to_string(Role role);
std::optional<Role> parse_role(std::string_view text);

// The store contains the hash of the secret, never the secret itself.
struct TokenRecord {
  std::string id;  // public part, 16 characters
  Digest secret_hash{};
  std::string name;  // for people
  Role role = Role::viewer;
  std::vector<std::string> tenants;  // empty: all (admin only)
  Instant created_at;
  std::optional<Instant> expires_at;
  std::optional<Instant> revoked_at;
};

class TokenStore {
 public:
  virtual ~TokenStore() = default;

  virtual Result<std::monostate> add_token(const TokenRecord& token) = 0;
  virtual Result<std::vector<TokenRecord>> list_tokens() = 0;
  // False when the store has no such token. A second revocation does not change the time of the first.
  virtual Result<bool> revoke_token(const std::string& id) = 0;
};

}  // namespace latchkey
