// Builds the query for a page of runs. Each filter reads an index that has the runs in the page's order, so that a page
// of a long history costs no more than one of a short history:
//   any status                    the heads, by tenant and function
//   in doubt, failed, cancelled   the rows in `states`, by tenant and function
//   queued, running               the blocks and rows of all open runs
//   completed                     the outcomes and rows; with a tenant or function the heads: outcomes have no function
// The filters by key and by creation time have no index: the scan continues until the page is full.
#include "store/postgres/pg_list.hpp"

#include "store/packing.hpp"
#include "store/postgres/run_columns.hpp"
#include "store/postgres/statements.hpp"

namespace latchkey::pg {

namespace {

// All parameters are always sent, although not every statement uses all of them.
//   $1 upper bound of the counter   $2 tenant   $3 function   $4 key   $5 since   $6 limit   $7 bytes of payloads

// SQL expressions for the tenant and function of the runs; empty: any.
struct Scope {
  std::string tenant, function;
  bool is_single() const { return !tenant.empty() && !function.empty(); }
};

std::string within(const std::string& table, const Scope& scope) {
  std::string sql;
  if (!scope.tenant.empty()) sql += " AND " + table + ".tenant = " + scope.tenant;
  if (!scope.function.empty()) sql += " AND " + table + ".function = " + scope.function;
  return sql;
}

std::string head_conditions(const ListQuery& query) {
  std::string sql;
  if (!query.key.empty()) sql += " AND r.key = $4";
  if (query.since) sql += " AND r.created_at >= $5";
  return sql;
}

// The same conditions for a table that has only the run's counter. PostgreSQL does not reorder a scalar sub-select, so
// rows come in the order of the outer table.
std::string head_is_listed(const ListQuery& query, const std::string& seq) {
  const std::string conditions = head_conditions(query);
  if (conditions.empty()) return "";
  return " AND (SELECT true FROM latchkey.runs r WHERE r.seq = " + seq + conditions + ")";
}

std::string status_of(const ListQuery& query) { return std::to_string(static_cast<int>(*query.status)); }

// The condition, and below the order, for a scan of one tenant and function in an index on (tenant, function, seq). The
// function is compared as a range: with an equality the planner may scan all tenants' runs by the primary key instead.
std::string in_scope(const std::string& table, const Scope& scope) {
  const std::string function = table + ".function", row = "(" + function + ", " + table + ".seq)";
  return table + ".tenant = " + scope.tenant + " AND " + row + " < (" + scope.function + ", $1) AND " + function +
         " >= " + scope.function;
}
std::string newest_first(const std::string& table, const std::string& limit) {
  return " ORDER BY " + table + ".function DESC, " + table + ".seq DESC LIMIT " + limit;
}

std::string from_heads(const ListQuery& query, const Scope& scope) {
  std::string sql = "SELECT r.seq FROM latchkey.runs r WHERE ";
  sql += scope.is_single() ? in_scope("r", scope) : "r.seq < $1" + within("r", scope);
  sql += head_conditions(query);
  if (query.status)
    sql += " AND (SELECT s.status FROM latchkey.all_states s WHERE s.seq = r.seq) = " + status_of(query);
  return sql + (scope.is_single() ? newest_first("r", "$6") : " ORDER BY r.seq DESC LIMIT $6");
}

// Runs of one status, by the index on (status, seq). The status is compared as a range, as above.
std::string from_rows(const ListQuery& query, const Scope& scope) {
  const std::string status = status_of(query);
  return "SELECT s.seq FROM latchkey.states s WHERE (s.status, s.seq) < (" + status +
         ", $1) AND s.status >= " + status + within("s", scope) + head_is_listed(query, "s.seq") +
         " ORDER BY s.status DESC, s.seq DESC LIMIT $6";
}

// Runs in doubt, failed or cancelled. Their index is on (tenant, function, seq), so it needs both.
std::string from_bad_rows(const ListQuery& query, const Scope& scope) {
  if (!scope.is_single()) return from_rows(query, scope);
  return "SELECT s.seq FROM latchkey.states s WHERE s.status = " + status_of(query) + " AND " + in_scope("s", scope) +
         head_is_listed(query, "s.seq") + newest_first("s", "$6");
}

// Expands ranges that do not overlap, newest first. Without further conditions, $6 ranges contain at least $6 runs.
std::string each_of(const std::string& ranges, const ListQuery& query) {
  return "SELECT x.seq FROM (" + ranges + (head_conditions(query).empty() ? " LIMIT $6" : "") +
         ") b CROSS JOIN LATERAL generate_series(least(b.hi, $1 - 1), b.lo, -1) x (seq)" + " WHERE true" +
         head_is_listed(query, "x.seq") + " ORDER BY b.lo DESC, x.seq DESC LIMIT $6";
}

std::string from_blocks(const ListQuery& query, const Scope& scope) {
  const std::string taken = query.status == Status::running ? " IS NOT NULL" : " IS NULL";
  return each_of("SELECT b.lo, b.hi FROM latchkey.blocks b WHERE b.lo < $1 AND b.session" + taken + within("b", scope) +
                     " ORDER BY b.lo DESC",
                 query);
}

std::string from_outcomes(const ListQuery& query) {
  return each_of("SELECT o.lo, o.hi FROM latchkey.outcomes o WHERE o.lo < $1 ORDER BY o.lo DESC", query);
}

std::string newest_of(const std::string& one, const std::string& other) {
  return "SELECT c.seq FROM ((" + one + ") UNION ALL (" + other + ")) c ORDER BY c.seq DESC LIMIT $6";
}

// Visits all functions of a tenant, or all tenants of a function, one after the other, and collects the newest runs. It
// skips a scope whose newest run is older than the last one of the page. The page initially has counters of no run
// (-1), so that it always has $6 entries.
template <class From>
std::string over_scopes(const ListQuery& query, From from) {
  const std::string column = query.tenant ? "r.function" : "r.tenant";
  const Scope fixed{.tenant = query.tenant ? "$2" : "", .function = ""};
  const Scope next{.tenant = query.tenant ? "$2" : "n.place", .function = query.tenant ? "n.place" : "$3"};
  const std::string next_scope = "SELECT " + column + " AS place FROM latchkey.runs r WHERE " + column + " > w.place" +
                                 within("r", fixed) + " ORDER BY " + column + " LIMIT 1";
  const std::string newest = "SELECT r.seq FROM latchkey.runs r WHERE " + in_scope("r", next) + newest_first("r", "1");
  const std::string page = newest_of("SELECT unnest(w.page) AS seq", from(next));
  return "WITH RECURSIVE walk (place, page) AS (SELECT '', array_fill(-1::bigint, ARRAY[$6::integer]) UNION ALL "
         "SELECT n.place, CASE WHEN (" +
         newest + ") > w.page[$6::integer] THEN ARRAY(" + page + ") ELSE w.page END FROM walk w CROSS JOIN LATERAL (" +
         next_scope + ") n) SELECT unnest(last.page) FROM (SELECT page FROM walk ORDER BY place DESC LIMIT 1) last";
}

bool is_unsuccessful(Status status) {
  return status == Status::in_doubt || status == Status::failed || status == Status::cancelled;
}

}  // namespace

std::string select_page(const ListQuery& query) {
  const Scope scope{.tenant = query.tenant ? "$2" : "", .function = query.function.empty() ? "" : "$3"};
  const bool is_anywhere = scope.tenant.empty() && scope.function.empty();
  if (query.status == Status::queued || query.status == Status::running)
    return newest_of(from_blocks(query, scope), from_rows(query, scope));
  if (query.status == Status::completed && is_anywhere) return newest_of(from_outcomes(query), from_rows(query, scope));
  const auto from = [&](const Scope& in) {
    return query.status && is_unsuccessful(*query.status) ? from_bad_rows(query, in) : from_heads(query, in);
  };
  return is_anywhere || scope.is_single() ? from(scope) : over_scopes(query, from);
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

// octet_length() does not read the payloads; they are read only for the runs that fit on the page.
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
