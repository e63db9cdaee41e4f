#include "client/api_client.hpp"

#include <fmt/format.h>

#include "http/target.hpp"
#include "wire/run_reader.hpp"

namespace latchkey {
namespace {

// "?a=b&c=d", with empty values left out.
class Query {
 public:
  Query& add(std::string_view name, std::string_view value) {
    if (value.empty()) return *this;
    text_ += text_.empty() ? '?' : '&';
    text_ += name;
    text_ += '=' + http::encode_percent(value);
    return *this;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

template <class T, class Read>
Result<std::vector<T>> read_items(wire::Json page, Read read) {
  simdjson::dom::array items;
  if (page["items"].get(items) != simdjson::SUCCESS)
    return fail(Code::REPLY_LOST, "the server's reply contains no items");
  std::vector<T> all;
  for (const wire::Json item : items) {
    Result<T> one = read(item);
    if (!one) return std::unexpected(one.error());
    all.push_back(*std::move(one));
  }
  return all;
}

std::string path_of(std::string_view things, const Uuid& id, std::string_view verb = "") {
  return fmt::format("/v1/{}/{}{}{}", things, to_string(id), verb.empty() ? "" : "/", verb);
}

// The verb of an operator action, and the body of its request.
struct MoveCall {
  using Call = std::pair<std::string, std::string>;
  Call operator()(const CancelByHand&) const { return {"cancel", "{}"}; }
  Call operator()(const RetryByHand& retry) const {
    return {"retry", retry.fresh_effect_key ? R"({"fresh_effect_key":true})" : "{}"};
  }
  Call operator()(const ResolveCompleted& resolve) const {
    const std::string result = resolve.result.empty() ? "" : ",\"result\":" + resolve.result;
    return {"resolve", R"({"outcome":"completed")" + result + "}"};
  }
  Call operator()(const ResolveFailed& resolve) const {
    const std::string note = resolve.note.empty() ? "" : ",\"note\":" + wire::quote(resolve.note);
    return {"resolve", R"({"outcome":"failed")" + note + "}"};
  }
  Call operator()(const ResolveRerun&) const { return {"resolve", R"({"outcome":"rerun"})"}; }
};

Result<TokenRecord> read_token_record(wire::Json object) {
  TokenRecord token{.id = wire::text(object, "id"), .name = wire::text(object, "name")};
  token.role = parse_role(wire::text(object, "role")).value_or(Role::viewer);
  simdjson::dom::array tenants;
  if (object["tenants"].get(tenants) == simdjson::SUCCESS)
    for (const wire::Json tenant : tenants)
      if (std::string_view name; tenant.get(name) == simdjson::SUCCESS) token.tenants.emplace_back(name);
  token.created_at = wire::instant(object, "created_at").value_or(Instant{});
  token.expires_at = wire::instant(object, "expires_at");
  token.revoked_at = wire::instant(object, "revoked_at");
  return token;
}

}  // namespace

Result<ApiClient> ApiClient::at(const std::string& address, const ServerLogin& login, Clock& clock) {
  auto server = ServerConnection::at(address, login, clock);
  if (!server) return std::unexpected(server.error());
  return ApiClient(*std::move(server));
}

Result<Page> ApiClient::list_runs(const ListQuery& query) {
  const Query sent = Query()
                         .add("tenant", query.tenant.value_or(""))
                         .add("function", query.function)
                         .add("status", query.status ? to_string(*query.status) : "")
                         .add("key", query.key)
                         .add("since", query.since ? format_rfc3339(*query.since) : "")
                         .add("cursor", query.cursor)
                         .add("limit", std::to_string(query.limit));
  const auto page = server_.call_or_fail("GET", "/v1/runs" + sent.text());
  if (!page) return std::unexpected(page.error());
  auto runs = read_items<Run>(*page, wire::read_run);
  if (!runs) return std::unexpected(runs.error());
  return Page{*std::move(runs), wire::text(*page, "next")};
}

Result<Run> ApiClient::find_run(RunId id) {
  const auto run = server_.call_or_fail("GET", path_of("runs", id));
  if (!run) return std::unexpected(run.error());
  return wire::read_run(wire::member(*run, "run").value_or(*run));
}

Result<Run> ApiClient::move_run(RunId id, Move move) {
  const auto [verb, body] = std::visit(MoveCall{}, move);
  const auto run = server_.call_or_fail("POST", path_of("runs", id, verb), body);
  if (!run) return std::unexpected(run.error());
  return wire::read_run(wire::member(*run, "run").value_or(*run));
}

Result<DeadLetterPage> ApiClient::list_dead_letters(const DeadLetterQuery& query) {
  const Query sent = Query()
                         .add("tenant", query.tenant.value_or(""))
                         .add("function", query.function)
                         .add("acknowledged", query.with_acknowledged ? "true" : "")
                         .add("cursor", query.cursor)
                         .add("limit", std::to_string(query.limit));
  const auto page = server_.call_or_fail("GET", "/v1/dead-letters" + sent.text());
  if (!page) return std::unexpected(page.error());
  auto entries = read_items<DeadLetter>(*page, wire::read_dead_letter);
  if (!entries) return std::unexpected(entries.error());
  return DeadLetterPage{*std::move(entries), wire::text(*page, "next")};
}

Result<DeadLetterDetails> ApiClient::find_dead_letter(Uuid id) {
  std::optional<DeadLetterDetails> details;
  std::string cursor;
  do {
    const auto object = server_.call_or_fail("GET", path_of("dead-letters", id) + Query().add("cursor", cursor).text());
    if (!object) return std::unexpected(object.error());
    auto entry = wire::read_dead_letter(*object);
    if (!entry) return std::unexpected(entry.error());
    if (!details) details = DeadLetterDetails{*std::move(entry), {}};
    simdjson::dom::array members;
    if ((*object)["members"].get(members) == simdjson::SUCCESS)
      for (const wire::Json member : members) details->members.push_back(wire::read_member(member));
    cursor = wire::text(*object, "next");
  } while (!cursor.empty());
  return *std::move(details);
}

Result<DeadLetter> ApiClient::acknowledge(Uuid id, const std::string&) {
  const auto entry = server_.call_or_fail("POST", path_of("dead-letters", id, "acknowledge"), "{}");
  if (!entry) return std::unexpected(entry.error());
  return wire::read_dead_letter(*entry);
}

Result<MembersMoved> ApiClient::move_members(Uuid letter, const DeadLetterAction& action, const std::string&,
                                             const std::function<void(const MembersMoved&)>&) {
  auto [verb, body] = std::visit(MoveCall{}, action.move);
  body.pop_back();  // members are added before the closing brace
  const auto add = [&](const std::string& member) { body.append(body.size() > 1 ? "," : "").append(member); };
  if (!action.note.empty() && !std::holds_alternative<ResolveFailed>(action.move))
    add("\"note\":" + wire::quote(action.note));
  if (!action.runs.empty()) {
    std::string runs;
    for (const RunId& run : action.runs) runs.append(runs.empty() ? "" : ",").append(wire::quote(to_string(run)));
    add("\"runs\":[" + runs + "]");
  }
  const auto moved = server_.call_or_fail("POST", path_of("dead-letters", letter, verb), body + "}");
  if (!moved) return std::unexpected(moved.error());
  MembersMoved all;
  for (const auto& [name, into] :
       {std::pair{"changed", &all.changed}, {"unchanged", &all.unchanged}, {"refused", &all.refused}})
    if ((*moved)[name].get(*into) != simdjson::SUCCESS)
      return fail(Code::REPLY_LOST, "the server's reply contains no counts of changed runs");
  simdjson::dom::array problems;
  if ((*moved)["problems"].get(problems) == simdjson::SUCCESS)
    for (const wire::Json problem : problems)
      all.problems.emplace_back(wire::text(problem, "run"),
                                wire::text(problem, "code") + ": " + wire::text(problem, "detail"));
  return all;
}

Result<NewToken> ApiClient::create_token(const TokenRequest& request) {
  std::vector<std::string> tenants;
  for (const std::string& tenant : request.tenants) tenants.push_back(wire::quote(tenant));
  const std::string expires =
      request.expires_in ? fmt::format(R"(,"expires_in_ms":{})", request.expires_in->count()) : std::string();
  const auto created =
      server_.call_or_fail("POST", "/v1/tokens",
                           fmt::format(R"({{"name":{},"role":{},"tenants":[{}]{}}})", wire::quote(request.name),
                                       wire::quote(to_string(request.role)), fmt::join(tenants, ","), expires));
  if (!created) return std::unexpected(created.error());
  const auto record = read_token_record(*created);
  return NewToken{*record, wire::text(*created, "token")};
}

Result<std::vector<TokenRecord>> ApiClient::list_tokens() {
  const auto page = server_.call_or_fail("GET", "/v1/tokens");
  if (!page) return std::unexpected(page.error());
  return read_items<TokenRecord>(*page, read_token_record);
}

Result<void> ApiClient::revoke_token(const std::string& id) {
  const auto done = server_.call_or_fail("DELETE", "/v1/tokens/" + http::encode_percent(id));
  if (!done) return std::unexpected(done.error());
  return {};
}

}  // namespace latchkey
