// A page is read from where its runs lie in their order, so that a long history costs no more than a short one:
//   of any status                 the heads, by tenant and function
//   in doubt, failed, cancelled   their rows in `states`, by tenant and function
//   queued, running               the blocks and the rows of what is not settled, whosever it is
//   completed                     the outcomes and rows; of a tenant or a function, its heads: outcomes know no
//   function
// What is asked of a head besides (its key, when it was made) has no index: the walk goes on until the page is full.
#include "store/postgres/pg_list.hpp"

#include "store/packing.hpp"
#include "store/postgres/run_columns.hpp"
#include "store/postgres/statements.hpp"

namespace latchkey::pg {

namespace {

// The parameters. All are sent, whichever a statement uses.
//   $1 below which counter   $2 tenant   $3 function   $4 key   $5 since   $6 how many   $7 bytes of payloads

// SQL for whose runs are looked for; empty: anybody's.
struct Place {
  std::string tenant, function;
  bool is_one() const { return !tenant.empty() && !function.empty(); }
};

std::string within(const std::string& table, const Place& place) {
  std::string sql;
  if (!place.tenant.empty()) sql += " AND " + table + ".tenant = " + place.tenant;
  if (!place.function.empty()) sql += " AND " + table + ".function = " + place.function;
  return sql;
}

std::string head_conditions(const ListQuery& query) {
  std::string sql;
  if (!query.key.empty()) sql += " AND r.key = $4";
  if (query.since) sql += " AND r.created_at >= $5";
  return sql;
}

// The same where only the run's counter is at hand. Scalar queries stay where they are: whatever the planner believes,
// rows come in the order of the table that is walked.
std::string head_is_listed(const ListQuery& query, const std::string& seq) {
  const std::string conditions = head_conditions(query);
  if (conditions.empty()) return "";
  return " AND (SELECT true FROM latchkey.runs r WHERE r.seq = " + seq + conditions + ")";
}

std::string status_of(const ListQuery& query) { return std::to_string(static_cast<int>(*query.status)); }

// What lies at one place of an index by tenant, function and counter, and its order. The planner is not told that the
// function is always the same: it would take the order from the primary key, and walk through everybody's runs.
std::string at(const std::string& table, const Place& place) {
  const std::string function = table + ".function", row = "(" + function + ", " + table + ".seq)";
  return table + ".tenant = " + place.tenant + " AND " + row + " < (" + place.function + ", $1) AND " + function +
         " >= " + place.function;
}
std::string newest_at(const std::string& table, const std::string& limit) {
  return " ORDER BY " + table + ".function DESC, " + table + ".seq DESC LIMIT " + limit;
}

std::string from_heads(const ListQuery& query, const Place& place) {
  std::string sql = "SELECT r.seq FROM latchkey.runs r WHERE ";
  sql += place.is_one() ? at("r", place) : "r.seq < $1" + within("r", place);
  sql += head_conditions(query);
  if (query.status)
    sql += " AND (SELECT s.status FROM latchkey.all_states s WHERE s.seq = r.seq) = " + status_of(query);
  return sql + (place.is_one() ? newest_at("r", "$6") : " ORDER BY r.seq DESC LIMIT $6");
}

// Of one status, by the index of them; said as above.
std::string from_rows(const ListQuery& query, const Place& place) {
  const std::string status = status_of(query);
  return "SELECT s.seq FROM latchkey.states s WHERE (s.status, s.seq) < (" + status +
         ", $1) AND s.status >= " + status + within("s", place) + head_is_listed(query, "s.seq") +
         " ORDER BY s.status DESC, s.seq DESC LIMIT $6";
}

// Of those that went wrong: the index of them is for one place.
std::string from_bad_rows(const ListQuery& query, const Place& place) {
  if (!place.is_one()) return from_rows(query, place);
  return "SELECT s.seq FROM latchkey.states s WHERE s.status = " + status_of(query) + " AND " + at("s", place) +
         head_is_listed(query, "s.seq") + newest_at("s", "$6");
}

// The runs of ranges that share none: the order of their beginnings is that of their runs, and where every run is
// listed, as many ranges as runs are enough.
std::string each_of(const std::string& ranges, const ListQuery& query) {
  return "SELECT x.seq FROM (" + ranges + (head_conditions(query).empty() ? " LIMIT $6" : "") +
         ") b CROSS JOIN LATERAL generate_series(least(b.hi, $1 - 1), b.lo, -1) x (seq)" + " WHERE true" +
         head_is_listed(query, "x.seq") + " ORDER BY b.lo DESC, x.seq DESC LIMIT $6";
}

std::string from_blocks(const ListQuery& query, const Place& place) {
  const std::string taken = query.status == Status::running ? " IS NOT NULL" : " IS NULL";
  return each_of("SELECT b.lo, b.hi FROM latchkey.blocks b WHERE b.lo < $1 AND b.session" + taken + within("b", place) +
                     " ORDER BY b.lo DESC",
                 query);
}

// As blocks do.
std::string from_outcomes(const ListQuery& query) {
  return each_of("SELECT o.lo, o.hi FROM latchkey.outcomes o WHERE o.lo < $1 ORDER BY o.lo DESC", query);
}

std::string newest_of(const std::string& one, const std::string& other) {
  return "SELECT c.seq FROM ((" + one + ") UNION ALL (" + other + ")) c ORDER BY c.seq DESC LIMIT $6";
}

// Goes from one function of a tenant to its next, or from one tenant to the next for a function, and keeps the newest
// runs of those it has seen. A place whose newest run is older than the page's last is left alone. The page is full
// from the beginning, of counters that no run has.
template <class From>
std::string over_places(const ListQuery& query, From from) {
  const std::string column = query.tenant ? "r.function" : "r.tenant";
  const Place fixed{.tenant = query.tenant ? "$2" : "", .function = ""};
  const Place next{.tenant = query.tenant ? "$2" : "n.place", .function = query.tenant ? "n.place" : "$3"};
  const std::string next_place = "SELECT " + column + " AS place FROM latchkey.runs r WHERE " + column + " > w.place" +
                                 within("r", fixed) + " ORDER BY " + column + " LIMIT 1";
  const std::string newest = "SELECT r.seq FROM latchkey.runs r WHERE " + at("r", next) + newest_at("r", "1");
  const std::string page = newest_of("SELECT unnest(w.page) AS seq", from(next));
  return "WITH RECURSIVE walk (place, page) AS (SELECT '', array_fill(-1::bigint, ARRAY[$6::integer]) UNION ALL "
         "SELECT n.place, CASE WHEN (" +
         newest + ") > w.page[$6::integer] THEN ARRAY(" + page + ") ELSE w.page END FROM walk w CROSS JOIN LATERAL (" +
         next_place + ") n) SELECT unnest(last.page) FROM (SELECT page FROM walk ORDER BY place DESC LIMIT 1) last";
}

bool went_wrong(Status status) {
  return status == Status::in_doubt || status == Status::failed || status == Status::cancelled;
}

}  // namespace

std::string select_page(const ListQuery& query) {
  const Place place{.tenant = query.tenant ? "$2" : "", .function = query.function.empty() ? "" : "$3"};
  const bool is_anywhere = place.tenant.empty() && place.function.empty();
  if (query.status == Status::queued || query.status == Status::running)
    return newest_of(from_blocks(query, place), from_rows(query, place));
  if (query.status == Status::completed && is_anywhere) return newest_of(from_outcomes(query), from_rows(query, place));
  const auto from = [&](const Place& at) {
    return query.status && went_wrong(*query.status) ? from_bad_rows(query, at) : from_heads(query, at);
  };
  return is_anywhere || place.is_one() ? from(place) : over_places(query, from);
}

Params page_params(const ListQuery& query, std::int64_t below) {
  Params params;
  params.add(below)
      .add_or_null(query.tenant)
      .add(std::string_view(query.function))
      .add_bytes(query.key)
      .add_or_null(query.since ? std::optional(to_ms(*query.since)) : std::nullopt)
      .add(query.limit + std::int64_t{1})
      .add(static_cast<std::int64_t>(query.payload_bytes_max));
  return params;
}

// Sizes are known without the payloads, which are fetched for the runs that the page has room for alone.
std::string select_listed(const ListQuery& query) {
  const std::string has_room = !query.with_payloads ? "true"
                                                    : "coalesce(sum(coalesce(octet_length(r.input), 0) + "
                                                      "coalesce(octet_length(s.result), 0)) OVER newer < $7, true)";
  const auto where_wanted = [&](std::string columns, const std::string& payload) {
    const std::string wanted =
        query.with_payloads ? "CASE WHEN " + has_room + " THEN " + payload + " END" : "NULL::bytea";
    return columns.replace(columns.find(payload), payload.size(), wanted);
  };
  return "SELECT " + where_wanted(sql().head_columns, "r.input") + ", " +
         where_wanted(sql().state_columns, "s.result") + ", " + has_room +
         " FROM latchkey.runs r JOIN latchkey.all_states s ON s.seq = r.seq WHERE r.seq = ANY(ARRAY(" +
         select_page(query) +
         ")) WINDOW newer AS (ORDER BY r.seq DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) " +
         "ORDER BY r.seq DESC";
}

}  // namespace latchkey::pg
