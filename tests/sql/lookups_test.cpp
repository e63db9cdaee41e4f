// Views find a row by its id with an index, among thousands of rows, for every kind of reader.
#include "sql/sql_fixture.hpp"

namespace latchkey {
namespace {

class SqlLookups : public SqlTest {
 protected:
  SqlLookups() {
    admin.run(
        "INSERT INTO latchkey.runs (seq, id, tenant, function, traits, priority, retries, window_ms, lease_ms, "
        "created_at) SELECT i, latchkey.make_id(i, i), CASE WHEN i % 2 = 0 THEN 'acme' ELSE 'globex' END, 'f', 0, 0, "
        "0, "
        "0, 0, i FROM generate_series(1, 5000) i; INSERT INTO latchkey.states (seq, tenant, function, priority, "
        "status, "
        "origin, generation, attempt, attempts_max, attempts_total, fence, first_attempt_at, waiting_for, failures, "
        "at, "
        "flags, effect) SELECT seq, tenant, function, 0, 4, 0, 1, 1, 1, 1, seq, 1, 0, 0, 1, 0, 0 FROM latchkey.runs; "
        "INSERT INTO latchkey.dead_letters SELECT seq, id, tenant, function, 'X', '', id, 1, 1, 1, 1, 'me' FROM "
        "latchkey.runs");
    run_ = *admin.one("SELECT id FROM latchkey.runs WHERE seq = 2500");
  }
  // The number of rows that PostgreSQL read for a statement, in all tables. The result is one row for every reader.
  long rows_read(Sql& sql, const std::string& statement) {
    const std::string counts =
        "SELECT coalesce(sum(seq_tup_read + coalesce(idx_tup_fetch, 0)), 0) FROM pg_stat_xact_all_tables WHERE "
        "schemaname = 'latchkey'";
    sql.run("BEGIN");
    const long before = std::stol(*sql.one(counts));
    EXPECT_EQ(sql.rows(statement).size(), 1u) << statement;
    const long after = std::stol(*sql.one(counts));
    sql.run("ROLLBACK");
    return after - before;
  }

  std::string run_;
};

TEST_F(SqlLookups, IdIsFoundByAnIndex) {
  const std::string where = " WHERE id = '" + run_ + "'";
  Sql believed = service("acme"), bound = connect(bound_role("acme"));
  for (const char* analyzed : {"SELECT", "ANALYZE"}) {
    admin.run(analyzed);
    for (Sql* sql : {&admin, &believed, &bound})
      for (const char* view : {"dead_letter_queue", "job_runs", "sync_run_log"})
        EXPECT_LT(rows_read(*sql, "SELECT * FROM latchkey." + (view + where)), 40) << analyzed << ": " << view;
    // The joined query is measured for readers of one tenant only: without a tenant in the condition, the planner does
    // not know that an id has one row.
    for (Sql* sql : {&believed, &bound})
      EXPECT_LT(rows_read(*sql,
                          "SELECT j.status FROM latchkey.dead_letter_queue q JOIN latchkey.job_runs j ON j.id = "
                          "q.failed_run_id WHERE q.id = '" +
                              run_ + "'"),
                40)
          << analyzed;
  }
}

}  // namespace
}  // namespace latchkey
