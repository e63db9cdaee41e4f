// Reads of runs: one run, a page of a list, and the explanation of a key.
#include "api/handlers_runs.hpp"

#include "api/query.hpp"
#include "engine/validate.hpp"
#include "keying/key_hash.hpp"
#include "wire/json_out.hpp"
#include "wire/run_json.hpp"

namespace latchkey::api {
namespace {

constexpr std::uint32_t kWaitMax = 60'000;
constexpr std::uint32_t kPageMax = 500;

void send_found_run(const Engine& engine, Answer& answer, const Result<std::optional<Run>>& found) {
  if (!found) return answer.send_error(found.error());
  if (!*found) return answer.send_error({Code::NOT_FOUND, ""});
  answer.send_json(200, wire::to_json(**found, wire::Payloads::all, engine.find_progress(**found).value_or("")));
}

Result<ListQuery> read_listing(Call& call) {
  constexpr std::array<std::string_view, 8> kNames{"function", "status", "tenant", "key",
                                                   "since",    "limit",  "cursor", "include"};
  const auto query = Query::parse(call.request.query, kNames);
  if (!query) return std::unexpected(query.error());
  auto tenant = call.find_tenant(query->find("tenant"));
  if (!tenant) return std::unexpected(tenant.error());
  ListQuery listing;
  listing.tenant = *std::move(tenant);
  listing.function = query->find("function");
  listing.key = query->find("key");
  if (auto fault = find_filter_fault(listing.function, listing.key)) return std::unexpected(*std::move(fault));
  listing.cursor = query->find("cursor");
  if (const auto text = query->find("status"); !text.empty()) {
    listing.status = parse_status(text);
    if (!listing.status)
      return fail(Code::INVALID_ARGUMENT, "`status` must be queued, running, in_doubt, completed, failed or cancelled");
  }
  if (const auto text = query->find("since"); !text.empty()) {
    const auto since = parse_rfc3339(text);
    if (!since) return fail(Code::INVALID_ARGUMENT, "`since` must be an RFC 3339 time such as 2026-02-06T10:00:00Z");
    listing.since = *since;
  }
  const auto limit = query->find_number("limit", 50, 1, kPageMax);
  if (!limit) return std::unexpected(limit.error());
  listing.limit = *limit;
  const auto include = query->find("include");
  if (!include.empty() && include != "payloads")
    return fail(Code::INVALID_ARGUMENT, "`include` may only be `payloads`");
  listing.with_payloads = !include.empty();
  return listing;
}

void send_page(Answer& answer, const Result<Page>& page, wire::Payloads payloads) {
  if (!page) return answer.send_error(page.error());
  answer.send_json(200, wire::write_page(page->runs, page->next, [&](std::string& text, const Run& run) {
                     wire::append_run(text, run, payloads);
                   }));
}

void send_explanation(Answer& answer, const Result<std::optional<KeyAnswer>>& key) {
  if (!key) return answer.send_error(key.error());
  if (!*key) return answer.send_error({Code::NOT_FOUND, ""});
  std::string text;
  wire::ObjectOut out(text);
  wire::append_run(out.member("run"), (*key)->run, wire::Payloads::all);
  wire::append_suppressed(out.member("suppressed"), (*key)->suppressed);
  out.end();
  answer.send_json(200, std::move(text));
}

}  // namespace

void find_run(RunContext& context, Call call) {
  constexpr std::array<std::string_view, 1> kNames{"wait_ms"};
  const auto query = Query::parse(call.request.query, kNames);
  if (!query) return call.answer.send_error(query.error());
  const auto wait_ms = query->find_number("wait_ms", 0, 0, kWaitMax);
  if (!wait_ms) return call.answer.send_error(wait_ms.error());
  auto tenant = call.find_tenant("");
  if (!tenant) return call.answer.send_error(tenant.error());
  do_reading(call, [&context, tenant = *std::move(tenant), id = id_of(call),
                    wait = Duration{*wait_ms}](Answer& answer) mutable {
    const auto found = context.engine.store().find(tenant, id);
    if (wait == Duration{0} || !found || !*found || (*found)->is_settled())
      return send_found_run(context.engine, answer, found);
    context.waiters.add(std::move(tenant), id, wait,
                        [&engine = context.engine, answer = std::move(answer)](
                            const Result<std::optional<Run>>& run) mutable { send_found_run(engine, answer, run); });
  });
}

void list_runs(RunContext& context, Call call) {
  auto listing = read_listing(call);
  if (!listing) return call.answer.send_error(listing.error());
  do_later(call, [&store = context.engine.store(), listing = *std::move(listing)](Answer& answer) {
    send_page(answer, store.list(listing), listing.with_payloads ? wire::Payloads::all : wire::Payloads::none);
  });
}

void explain_key(RunContext& context, Call call) {
  constexpr std::array<std::string_view, 3> kNames{"function", "key", "tenant"};
  const auto query = Query::parse(call.request.query, kNames);
  if (!query) return call.answer.send_error(query.error());
  auto tenant = call.find_tenant(query->find("tenant"));
  if (!tenant) return call.answer.send_error(tenant.error());
  KeyName name{tenant->value_or("default"), std::string(query->find("function")), std::string(query->find("key"))};
  if (const auto fault = find_function_fault(name.function)) return call.answer.send_error(*fault);
  if (const auto fault = find_key_fault(name.key)) return call.answer.send_error(*fault);
  name.hash = compute_key_hash(name.tenant, name.function, name.key);
  do_reading(call, [&engine = context.engine, name = std::move(name)](Answer& answer) {
    send_explanation(answer, engine.explain_key(name));
  });
}

}  // namespace latchkey::api
