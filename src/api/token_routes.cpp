#include "api/token_routes.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "api/body.hpp"
#include "api/token.hpp"
#include "engine/validate.hpp"
#include "wire/json_out.hpp"
#include "wire/run_json.hpp"

namespace latchkey::api {
namespace {

constexpr std::size_t kTenantsMax = 100;

struct TokenBody {
  std::string name;
  std::optional<Role> role;
  std::vector<std::string> tenants;
  std::optional<Duration> expires_in;
};

wire::Fault read_role(TokenBody& body, const wire::JsonValue& value) {
  std::string text;
  if (auto fault = read_text(value, text)) return fault;
  body.role = parse_role(text);
  if (!body.role) return wrong_value(value, "viewer, service, org-admin or admin");
  return std::nullopt;
}

constexpr std::array kTokenMembers{
    wire::Member<TokenBody>{"name", [](auto& body, auto& value) { return read_text(value, body.name); }},
    wire::Member<TokenBody>{"role", read_role},
    wire::Member<TokenBody>{"tenants", [](auto& body, auto& value) { return read_texts(value, body.tenants); }},
    wire::Member<TokenBody>{"expires_in_ms", [](auto& body, auto& value) { return read_ms(value, body.expires_in); }},
};

Error wrong(const char* detail) { return {Code::INVALID_ARGUMENT, detail}; }

wire::Fault find_fault(const TokenBody& body) {
  if (!body.role) return wrong("`role` is missing");
  if (auto fault = find_name_fault(body.name)) return fault;
  if (*body.role == Role::admin && !body.tenants.empty()) return wrong("an admin token acts for all tenants");
  if (*body.role != Role::admin && body.tenants.empty()) return wrong("`tenants` is missing");
  if (body.tenants.size() > kTenantsMax) return wrong("`tenants` names more than 100");
  for (const std::string& tenant : body.tenants)
    if (auto fault = find_tenant_fault(tenant)) return fault;
  if (body.expires_in && (*body.expires_in <= Duration{0} || *body.expires_in > kWindowMax))
    return wrong("`expires_in_ms` must be more than 0 and at most ten years");
  return std::nullopt;
}

// Removes later repeats of a name; the order stays.
void remove_duplicates(std::vector<std::string>& names) {
  std::vector<std::string> unique;
  for (std::string& name : names)
    if (std::ranges::find(unique, name) == unique.end()) unique.push_back(std::move(name));
  names = std::move(unique);
}

bool may_manage(const Principal& principal, Role role, const std::vector<std::string>& tenants) {
  if (principal.acts_for_all()) return true;
  return role <= principal.role && !tenants.empty() &&
         std::ranges::all_of(tenants, [&](const std::string& tenant) { return principal.acts_for(tenant); });
}

void add_token(TokenContext& context, TokenRecord record, const std::string& whole, Answer& answer) {
  record.created_at = context.store.now();
  if (const auto added = context.store.add_token(record); !added) return answer.send_error(added.error());
  if (const auto fresh = context.tokens.refresh(); !fresh) return answer.send_error(fresh.error());
  std::string text;
  wire::append_token(text, record, whole);
  answer.send_json(201, std::move(text));
}

void remove_token(TokenContext& context, const Principal& principal, const std::string& id, Answer& answer) {
  const auto tokens = context.store.list_tokens();
  if (!tokens) return answer.send_error(tokens.error());
  const auto known = std::ranges::find(*tokens, id, &TokenRecord::id);
  if (known == tokens->end() || !may_manage(principal, known->role, known->tenants))
    return answer.send_error({Code::NOT_FOUND, ""});
  const auto revoked = context.store.revoke_token(id);
  // Refuse the token even if the revocation may have failed: a revoked token must not be accepted. If it did fail, the
  // token is accepted again after the next successful refresh.
  context.tokens.forget(id);
  const auto fresh = context.tokens.refresh();
  if (!revoked) return answer.send_error(revoked.error());
  if (!fresh) spdlog::warn("a token was revoked, but the list of tokens cannot be read: {}", to_string(fresh.error()));
  answer.send({.status = 204});
}

void list_tokens(TokenContext& context, Call call) {
  do_later(call, [&context, principal = call.principal](Answer& answer) {
    const auto tokens = context.store.list_tokens();
    if (!tokens) return answer.send_error(tokens.error());
    std::string text = R"({"items":[)";
    for (const TokenRecord& token : *tokens) {
      if (!may_manage(*principal, token.role, token.tenants)) continue;
      if (text.back() == '}') text.push_back(',');
      wire::append_token(text, token);
    }
    answer.send_json(200, std::move(text.append(R"(],"next":null})")));
  });
}

// The caller's own token, as far as its authentication knows it.
void show_own_token(TokenContext&, Call call) {
  const Principal& principal = *call.principal;
  std::string text;
  wire::ObjectOut out(text);
  out.word("id", principal.token_id).text("name", principal.name).word("role", to_string(principal.role));
  out.raw("tenants", "[");
  for (const std::string& tenant : principal.tenants)
    text.append(text.back() == '[' ? "\"" : ",\"").append(tenant).append("\"");
  text.push_back(']');
  if (principal.expires_at) out.instant("expires_at", *principal.expires_at);
  out.end();
  call.answer.send_json(200, std::move(text));
}

void create_token(TokenContext& context, Call call) {
  auto body = read_body(call.request, kTokenMembers);
  if (!body) return call.answer.send_error(body.error());
  // By default a token gets the tenants of its creator.
  if (body->tenants.empty() && body->role != Role::admin) body->tenants = call.principal->tenants;
  remove_duplicates(body->tenants);
  if (const auto fault = find_fault(*body)) return call.answer.send_error(*fault);
  if (!may_manage(*call.principal, *body->role, body->tenants))
    return call.answer.send_error(
        {Code::FORBIDDEN, "a token cannot have a higher role or more tenants than its creator"});
  TokenText token = make_token(context.random);
  TokenRecord record{token.id, token.secret_hash, std::move(body->name), *body->role, std::move(body->tenants), {}};
  if (body->expires_in) record.expires_at = context.store.now() + *body->expires_in;
  do_later(call, [&context, record = std::move(record), whole = std::move(token.whole)](Answer& answer) {
    add_token(context, record, whole, answer);
  });
}

void revoke_token(TokenContext& context, Call call) {
  do_later(call, [&context, principal = call.principal, id = std::string(call.parameter)](Answer& answer) {
    remove_token(context, *principal, id, answer);
  });
}

}  // namespace

RouteGroup token_routes(TokenContext& context) {
  static constexpr Route<TokenContext> kRoutes[] = {
      {{"GET", "/v1/tokens", Access::org_admin}, list_tokens},
      {{"GET", "/v1/tokens/self", Access::viewer}, show_own_token},
      {{"POST", "/v1/tokens", Access::org_admin}, create_token},
      {{"DELETE", "/v1/tokens/{id}", Access::org_admin}, revoke_token},
  };
  return {context, kRoutes};
}

}  // namespace latchkey::api
