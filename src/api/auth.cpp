#include "api/auth.hpp"

#include <openssl/crypto.h>

#include <algorithm>
#include <cstring>

#include "api/token.hpp"
#include "engine/validate.hpp"

namespace latchkey::api {
namespace {

constexpr std::size_t kCachedMax = 256;

struct HashOfDigest {
  std::size_t operator()(const Digest& digest) const noexcept {
    std::size_t hash;
    std::memcpy(&hash, digest.data(), sizeof hash);
    return hash;
  }
};

// The valid tokens that one thread has seen.
struct TokenCache {
  std::uint64_t version = 0;
  std::unordered_map<Digest, std::shared_ptr<const Principal>, HashOfDigest> valid;
};

std::uint64_t next_version() {
  static std::atomic<std::uint64_t> versions{0};
  return ++versions;
}

bool is_bearer(std::string_view scheme) {
  return scheme.size() == 7 && std::ranges::equal(scheme, std::string_view("bearer "), [](char a, char b) {
           return (a >= 'A' && a <= 'Z' ? char(a | 0x20) : a) == b;
         });
}

}  // namespace

bool Principal::acts_for(std::string_view tenant) const {
  return acts_for_all() || std::ranges::find(tenants, tenant) != tenants.end();
}

void TokenTable::forget(const std::string& id) {
  const std::lock_guard one(refreshing_);
  const std::lock_guard lock(mutex_);
  auto tokens = std::make_shared<Tokens>(*tokens_);
  tokens->erase(id);
  tokens_ = std::move(tokens);
  version_.store(next_version(), std::memory_order_release);
}

Result<void> TokenTable::refresh() {
  const std::lock_guard one(refreshing_);
  const auto records = store_.list_tokens();
  if (!records) return std::unexpected(records.error());
  auto tokens = std::make_shared<Tokens>();
  for (const TokenRecord& record : *records) {
    if (record.revoked_at || (record.tenants.empty() && record.role != Role::admin)) continue;
    Principal principal{record.id, record.name.empty() ? record.id : record.name, record.role, record.tenants,
                        record.expires_at};
    tokens->emplace(record.id, Known{record.secret_hash, std::make_shared<const Principal>(std::move(principal))});
  }
  const std::lock_guard lock(mutex_);
  tokens_ = std::move(tokens);
  version_.store(next_version(), std::memory_order_release);
  return {};
}

std::shared_ptr<const Principal> TokenTable::find_principal(std::string_view authorization) const {
  if (!is_bearer(authorization.substr(0, 7))) return nullptr;
  const std::size_t token = authorization.find_first_not_of(' ', 7);  // one space or more
  if (token == authorization.npos) return nullptr;
  const auto parts = parse_token(authorization.substr(token));
  if (!parts) return nullptr;
  std::shared_ptr<const Tokens> tokens;
  {
    const std::lock_guard lock(mutex_);
    tokens = tokens_;
  }
  const auto known = tokens->find(std::string(parts->id));
  if (known == tokens->end()) return nullptr;
  const Digest& hash = known->second.secret_hash;
  if (CRYPTO_memcmp(hash.data(), parts->secret_hash.data(), hash.size()) != 0) return nullptr;
  return known->second.principal;
}

Result<std::shared_ptr<const Principal>> TokenTable::authenticate(std::optional<std::string_view> authorization,
                                                                  Instant now) {
  static thread_local TokenCache cache;
  if (!authorization) return fail(Code::UNAUTHENTICATED, "send Authorization: Bearer with a token");
  const std::uint64_t version = version_.load(std::memory_order_acquire);
  if (cache.version != version || cache.valid.size() > kCachedMax) cache.valid.clear(), cache.version = version;
  const Digest digest = sha256(*authorization);
  std::shared_ptr<const Principal> principal;
  if (const auto known = cache.valid.find(digest); known != cache.valid.end())
    principal = known->second;
  else if ((principal = find_principal(*authorization)))
    cache.valid.emplace(digest, principal);
  if (!principal || (principal->expires_at && now >= *principal->expires_at))
    return fail(Code::UNAUTHENTICATED, "the token is not valid");
  return principal;
}

Result<std::optional<std::string>> find_tenant(const Principal& principal, const http::Request& request,
                                               std::string_view named) {
  std::string_view tenant = named;
  if (const auto header = request.find("latchkey-tenant")) {
    if (!named.empty() && named != *header)
      return fail(Code::INVALID_ARGUMENT, "`tenant` and the Latchkey-Tenant header name different tenants");
    tenant = *header;
    if (tenant.empty()) return fail(Code::INVALID_ARGUMENT, "the Latchkey-Tenant header is empty");
  }
  if (!tenant.empty()) {
    if (auto fault = find_tenant_fault(tenant)) return std::unexpected(*std::move(fault));
    if (!principal.acts_for(tenant)) return fail(Code::FORBIDDEN, "the token may not act for this tenant");
    return std::string(tenant);
  }
  if (principal.acts_for_all()) return std::nullopt;
  if (principal.tenants.size() == 1) return principal.tenants.front();
  return fail(Code::INVALID_ARGUMENT, "the token acts for several tenants: name one in Latchkey-Tenant or `tenant`");
}

}  // namespace latchkey::api
