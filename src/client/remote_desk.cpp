#include "client/remote_desk.hpp"

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
    return fail(Code::REPLY_LOST, "the server's answer has no items in it");
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

// The verb and the body of a move.
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

Result<Page> RemoteOperatorClient::list_runs(const ListQuery& query) {
  const Query sent = Query()
                         .add("tenant", query.tenant.value_or(""))
                         .add("function", query.function)
                         .add("status", query.status ? to_string(*query.status) : "")
                         .add("key", query.key)
                         .add("since", query.since ? format_rfc3339(*query.since) : "")
                         .add("cursor", query.cursor)
                         .add("limit", std::to_string(query.limit));
  const auto page = server_.ask("GET", "/v1/runs" + sent.text());
  if (!page) return std::unexpected(page.error());
  auto runs = read_items<Run>(*page, wire::read_run);
  if (!runs) return std::unexpected(runs.error());
  return Page{*std::move(runs), wire::text(*page, "next")};
}

Result<Run> RemoteOperatorClient::find_run(RunId id) {
  const auto run = server_.ask("GET", path_of("runs", id));
  if (!run) return std::unexpected(run.error());
  return wire::read_run(wire::member(*run, "run").value_or(*run));
}

Result<Run> RemoteOperatorClient::move_run(RunId id, Move move) {
  const auto [verb, body] = std::visit(MoveCall{}, move);
  const auto run = server_.ask("POST", path_of("runs", id, verb), body);
  if (!run) return std::unexpected(run.error());
  return wire::read_run(wire::member(*run, "run").value_or(*run));
}

Result<DeadLetterPage> RemoteOperatorClient::list_dead_letters(const DeadLetterQuery& query) {
  const Query sent = Query()
                         .add("tenant", query.tenant.value_or(""))
                         .add("function", query.function)
                         .add("acknowledged", query.with_acknowledged ? "true" : "")
                         .add("cursor", query.cursor)
                         .add("limit", std::to_string(query.limit));
  const auto page = server_.ask("GET", "/v1/dead-letters" + sent.text());
  if (!page) return std::unexpected(page.error());
  auto entries = read_items<DeadLetter>(*page, wire::read_dead_letter);
  if (!entries) return std::unexpected(entries.error());
  return DeadLetterPage{*std::move(entries), wire::text(*page, "next")};
}

Result<DeadLetterWhole> RemoteOperatorClient::find_dead_letter(Uuid id) {
  std::optional<DeadLetterWhole> whole;
  std::string cursor;
  do {
    const auto object = server_.ask("GET", path_of("dead-letters", id) + Query().add("cursor", cursor).text());
    if (!object) return std::unexpected(object.error());
    auto entry = wire::read_dead_letter(*object);
    if (!entry) return std::unexpected(entry.error());
    if (!whole) whole = DeadLetterWhole{*std::move(entry), {}};
    simdjson::dom::array members;
    if ((*object)["members"].get(members) == simdjson::SUCCESS)
      for (const wire::Json member : members) whole->members.push_back(wire::read_member(member));
    cursor = wire::text(*object, "next");
  } while (!cursor.empty());
  return *std::move(whole);
}

Result<DeadLetter> RemoteOperatorClient::acknowledge(Uuid id,
                                                     const std::string&) {  // the server knows who by the token
  const auto entry = server_.ask("POST", path_of("dead-letters", id, "acknowledge"), "{}");
  if (!entry) return std::unexpected(entry.error());
  return wire::read_dead_letter(*entry);
}

Result<MembersMoved> RemoteOperatorClient::move_members(Uuid letter, const DeadLetterAction& wish, const std::string&,
                                                        const std::function<void(const MembersMoved&)>&) {
  auto [verb, body] = std::visit(MoveCall{}, wish.move);
  body.pop_back();  // goes on before its closing brace
  const auto add = [&](const std::string& member) { body.append(body.size() > 1 ? "," : "").append(member); };
  if (!wish.note.empty() && !std::holds_alternative<ResolveFailed>(wish.move))
    add("\"note\":" + wire::quote(wish.note));
  if (!wish.runs.empty()) {
    std::string runs;
    for (const RunId& run : wish.runs) runs.append(runs.empty() ? "" : ",").append(wire::quote(to_string(run)));
    add("\"runs\":[" + runs + "]");
  }
  const auto moved = server_.ask("POST", path_of("dead-letters", letter, verb), body + "}");
  if (!moved) return std::unexpected(moved.error());
  MembersMoved all;
  for (const auto& [name, into] :
       {std::pair{"changed", &all.changed}, {"unchanged", &all.unchanged}, {"refused", &all.refused}})
    if ((*moved)[name].get(*into) != simdjson::SUCCESS)
      return fail(Code::REPLY_LOST, "the server's answer does not say how many changed");
  simdjson::dom::array problems;
  if ((*moved)["problems"].get(problems) == simdjson::SUCCESS)
    for (const wire::Json problem : problems)
      all.problems.emplace_back(wire::text(problem, "run"),
                                wire::text(problem, "code") + ": " + wire::text(problem, "detail"));
  return all;
}

Result<NewToken> RemoteOperatorClient::create_token(const TokenWish& wish) {
  std::vector<std::string> tenants;
  for (const std::string& tenant : wish.tenants) tenants.push_back(wire::quote(tenant));
  const std::string expires =
      wish.expires_in ? fmt::format(R"(,"expires_in_ms":{})", wish.expires_in->count()) : std::string();
  const auto made = server_.ask("POST", "/v1/tokens",
                                fmt::format(R"({{"name":{},"role":{},"tenants":[{}]{}}})", wire::quote(wish.name),
                                            wire::quote(to_string(wish.role)), fmt::join(tenants, ","), expires));
  if (!made) return std::unexpected(made.error());
  const auto record = read_token_record(*made);
  return NewToken{*record, wire::text(*made, "token")};
}

Result<std::vector<TokenRecord>> RemoteOperatorClient::list_tokens() {
  const auto page = server_.ask("GET", "/v1/tokens");
  if (!page) return std::unexpected(page.error());
  return read_items<TokenRecord>(*page, read_token_record);
}

Result<void> RemoteOperatorClient::revoke_token(const std::string& id) {
  const auto done = server_.ask("DELETE", "/v1/tokens/" + http::encode_percent(id));
  if (!done) return std::unexpected(done.error());
  return {};
}

}  // namespace latchkey
