#include "api/handlers_dead_letters.hpp"

#include "api/body.hpp"
#include "api/query.hpp"
#include "engine/validate.hpp"
#include "store/listing.hpp"
#include "wire/json_out.hpp"
#include "wire/run_json.hpp"

namespace latchkey::api {
namespace {

constexpr std::uint32_t kMembersMax = 500;

Result<DeadLetterQuery> read_query(Call& call) {
  constexpr std::array<std::string_view, 5> kNames{"tenant", "function", "acknowledged", "limit", "cursor"};
  const auto query = Query::parse(call.request.query, kNames);
  if (!query) return std::unexpected(query.error());
  auto tenant = call.find_tenant(query->find("tenant"));
  if (!tenant) return std::unexpected(tenant.error());
  const auto limit = query->find_number("limit", 50, 1, 500);
  if (!limit) return std::unexpected(limit.error());
  const auto acknowledged = query->find("acknowledged");
  if (!acknowledged.empty() && acknowledged != "true" && acknowledged != "false")
    return fail(Code::INVALID_ARGUMENT, "`acknowledged` must be true or false");
  const auto function = query->find("function");
  if (auto fault = find_filter_fault(function, "")) return std::unexpected(*std::move(fault));
  return DeadLetterQuery{*std::move(tenant), std::string(function), acknowledged == "true",
                         std::string(query->find("cursor")), *limit};
}

struct MembersQuery {
  MemberPosition after;
  std::uint32_t limit = 0;
};

Result<MembersQuery> read_members_query(const Call& call) {
  constexpr std::array<std::string_view, 2> kNames{"limit", "cursor"};
  const auto query = Query::parse(call.request.query, kNames);
  if (!query) return std::unexpected(query.error());
  const auto limit = query->find_number("limit", kMembersMax, 1, kMembersMax);
  if (!limit) return std::unexpected(limit.error());
  const auto after = read_position(query->find("cursor"));
  if (!after) return std::unexpected(bad_cursor());
  return MembersQuery{*after, *limit};
}

void send_page(Answer& answer, const Result<DeadLetterPage>& page) {
  if (!page) return answer.send_error(page.error());
  answer.send_json(200, wire::write_page(page->entries, page->next, [](std::string& text, const DeadLetter& entry) {
                     wire::append_dead_letter(text, entry, nullptr);
                   }));
}

void send_entry(Answer& answer, const Result<std::optional<DeadLetter>>& entry, const wire::MembersPage* members) {
  if (!entry) return answer.send_error(entry.error());
  if (!*entry) return answer.send_error({Code::NOT_FOUND, ""});
  std::string text;
  wire::append_dead_letter(text, **entry, members);
  answer.send_json(200, std::move(text));
}

struct NoBody {};
constexpr std::array<wire::Member<NoBody>, 0> kNoMembers{};

}  // namespace

void list_dead_letters(DeadLetterContext& context, Call call) {
  auto query = read_query(call);
  if (!query) return call.answer.send_error(query.error());
  do_later(call, [&store = context.store, query = *std::move(query)](Answer& answer) {
    send_page(answer, store.list_dead_letters(query));
  });
}

void find_dead_letter(DeadLetterContext& context, Call call) {
  auto tenant = call.find_tenant("");
  if (!tenant) return call.answer.send_error(tenant.error());
  const auto query = read_members_query(call);
  if (!query) return call.answer.send_error(query.error());
  do_later(call,
           [&store = context.store, tenant = *std::move(tenant), id = id_of(call), query = *query](Answer& answer) {
             const auto entry = store.find_dead_letter(tenant, id);
             if (!entry || !*entry) return send_entry(answer, entry, nullptr);
             auto members = store.list_members(id, query.limit, query.after);
             if (!members) return answer.send_error(members.error());
             const bool more = members->size() == query.limit;
             const std::string next = more ? write_position(position_of(members->back())) : std::string();
             const wire::MembersPage page{*std::move(members), next};
             send_entry(answer, entry, &page);
           });
}

void acknowledge_dead_letter(DeadLetterContext& context, Call call) {
  if (const auto body = read_body(call.request, kNoMembers); !body) return call.answer.send_error(body.error());
  auto tenant = call.find_tenant("");
  if (!tenant) return call.answer.send_error(tenant.error());
  do_later(call, [&store = context.store, tenant = *std::move(tenant), id = id_of(call), actor = call.principal->name](
                     Answer& answer) { send_entry(answer, store.acknowledge(tenant, id, actor), nullptr); });
}

}  // namespace latchkey::api
