// Covert channels of SQL: a tenant's EXPLAIN ANALYZE and its transaction's read counts show no difference between
// another tenant's rows and rows that do not exist.
#include <algorithm>
#include <map>
#include <sstream>

#include "sql/sql_hostile.hpp"

namespace latchkey {
namespace {

const std::string kUnusedId = "0190a6b2-7c3d-7abc-8def-0123456789ab";

class SqlCovert : public SqlHostile {
 protected:
  SqlCovert() {
    // Enough rows that the planner uses indexes.
    admin.run(
        "INSERT INTO latchkey.tenants SELECT 'other-' || i, latchkey.name_uuid('other-' || i) FROM generate_series(1, "
        "300) i; INSERT INTO latchkey.runs (seq, id, tenant, function, traits, priority, retries, window_ms, lease_ms, "
        "created_at) SELECT 2000000 + i, gen_random_uuid(), 'other-' || i % 300, 'f', 0, 0, 0, 0, 0, 0 FROM "
        "generate_series(1, 3000) i; ANALYZE latchkey.tenants; ANALYZE latchkey.runs");
  }

  static std::string without(std::string text, const std::string& what) {
    for (std::size_t at; (at = text.find(what)) != text.npos;) text.replace(at, what.size(), "?");
    return text;
  }
  // The statement's query plan and the rows that it read of each table; ? is the value in it.
  std::string trace(Sql& session, std::string statement, const std::string& value) {
    statement.replace(statement.find('?'), 1, value);
    const std::string counts =
        "SELECT coalesce(string_agg(format('%s %s %s %s %s', relname, seq_scan, seq_tup_read, idx_scan, "
        "idx_tup_fetch), "
        "' ' ORDER BY relname), '') FROM pg_stat_xact_all_tables WHERE schemaname = 'latchkey'";
    session.run("BEGIN");
    std::string seen;
    try {
      for (const auto& row : session.rows("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) " + statement))
        seen += *row[0] + "\n";
    } catch (const SqlError& error) {
      seen = error.state + error.what();
      session.run("ROLLBACK; BEGIN");
    }
    session.run("ROLLBACK");
    // The counts are those of the session's current transaction: the difference is the statement's.
    session.run("BEGIN");
    const std::string before = *session.one(counts);
    try {
      session.run("SAVEPOINT s; " + statement);
    } catch (const SqlError& error) {
      seen += error.state;
      session.run("ROLLBACK TO s");
    }
    std::map<std::string, std::vector<long>> read;
    for (const auto& [text, sign] : {std::pair{before, -1}, {*session.one(counts), 1}}) {
      std::istringstream words(text);
      for (std::string table; words >> table;) {
        auto& sums = read[table];
        sums.resize(4);
        for (long& sum : sums) {
          long count = 0;
          words >> count;
          sum += sign * count;
        }
      }
    }
    session.run("ROLLBACK");
    for (const auto& [table, sums] : read) {
      if (std::ranges::all_of(sums, [](long sum) { return sum == 0; })) continue;
      seen += table;
      for (const long sum : sums) seen += " " + std::to_string(sum);
      seen += "\n";
    }
    return without(seen, value);
  }
};

TEST_F(SqlCovert, ForeignRowsLookAbsent) {
  const std::string letter = *foreign_[2], run = *foreign_[0], uuid = *foreign_[3];
  const std::string hash = *admin.one("SELECT hash FROM latchkey.runs WHERE id = $1", {run});
  struct Probe {
    std::string statement, foreign, absent;
  };
  const std::vector<Probe> probes{
      {"SELECT FROM latchkey.keys WHERE hash = '?'", hash, kUnusedId},
      {"SELECT FROM latchkey.runs WHERE hash = '?'", hash, kUnusedId},
      {"SELECT FROM latchkey.runs WHERE id = '?'", run, kUnusedId},
      {"SELECT FROM latchkey.runs WHERE tenant = '?'", "globex", "unused"},
      {"SELECT FROM latchkey.job_runs WHERE id = '?'", run, kUnusedId},
      {"SELECT FROM latchkey.sync_run_log WHERE id = '?'", run, kUnusedId},
      {"SELECT FROM latchkey.job_runs WHERE tenant_id = '?'", uuid, kUnusedId},
      {"SELECT FROM latchkey.tenants WHERE id = '?'", uuid, kUnusedId},
      {"SELECT FROM latchkey.tenants WHERE name = '?'", "globex", "unused"},
      {"SELECT FROM latchkey.dead_letter_queue WHERE id = '?'", letter, kUnusedId},
      {"SELECT FROM latchkey.dead_letter_queue WHERE failed_run_id = '?'", run, kUnusedId},
      {"SELECT FROM latchkey.sync_errors WHERE source_entity_id = '?'", run, kUnusedId},
      {"SELECT FROM latchkey.geoprocessing_idempotency WHERE idempotency_key = '?'", "globex-done", "unused"},
      {"SELECT FROM latchkey.members WHERE actor = '?'", "globex-admin", "unused"},
      {"SELECT latchkey.tenant_id('?')", "globex", "unused"},
      {"SELECT latchkey.is_org_admin('?')", "globex-admin", "unused"},
      {"SELECT latchkey.begin_run('f', '?')", "globex-open", "unused"},
      {"SELECT latchkey.begin_run('f', '?')", "globex-done", "unused"},
      {"SELECT latchkey.enqueue('f', '?')", "globex-done", "unused"},
  };
  Sql bound = connect(bound_role("acme")), believed = service("acme");
  for (Sql* session : {&bound, &believed})
    for (const char* scans : {"on", "off"}) {
      session->run(std::string("SET enable_seqscan = ") + scans + "; SET enable_bitmapscan = " + scans);
      for (const auto& [statement, foreign, absent] : probes) {
        trace(*session, statement, absent);  // fills the session's catalog caches
        EXPECT_EQ(trace(*session, statement, foreign), trace(*session, statement, absent)) << statement;
      }
    }
  // The test can fail: the tenant's own rows look different.
  EXPECT_NE(trace(bound, "SELECT FROM latchkey.tenants WHERE name = '?'", "acme"),
            trace(bound, "SELECT FROM latchkey.tenants WHERE name = '?'", "unused"));
}

// is_latest reads `keys`, which tenants cannot read. It does so for the reader's own runs only.
TEST_F(SqlCovert, IsLatestDoesNotRevealForeignKeys) {
  const auto foreign = admin.row("SELECT seq, hash FROM latchkey.runs WHERE convert_from(key, 'UTF8') = 'globex-done'");
  const auto own = admin.row("SELECT seq, hash FROM latchkey.runs WHERE convert_from(key, 'UTF8') = 'acme-done'");
  Sql session = connect(bound_role("acme"));
  const auto ask = [&](const std::vector<Value>& run, const Value& hash) {
    return session.one("SELECT latchkey.is_latest($1, $2)", {run[0], hash});
  };
  EXPECT_EQ(ask(own, own[1]), "t");
  EXPECT_EQ(ask(own, foreign[1]), "f");
  EXPECT_EQ(ask(foreign, foreign[1]), "f");
  const std::string statement = "SELECT latchkey.is_latest(" + *foreign[0] + ", '?')";
  EXPECT_EQ(trace(session, statement, *foreign[1]), trace(session, statement, kUnusedId));
  EXPECT_EQ(trace(session, statement, *foreign[1]).find("keys"), std::string::npos);
}

TEST_F(SqlCovert, ReadersOfAllTenantsSeeEachResult) {
  const std::string count = "SELECT count(DISTINCT tenant_id) FROM latchkey.geoprocessing_idempotency";
  EXPECT_EQ(admin.one(count), "2");
  EXPECT_EQ(connect(bound_role("acme")).one(count), "1");
  const std::string above = make_role("above", "BYPASSRLS"), engine = make_role("engine");
  admin.run("GRANT latchkey_tenant TO " + above + "; GRANT latchkey_engine TO " + engine);
  EXPECT_EQ(connect(above).one(count), "2");
  EXPECT_EQ(connect(engine).one(count), "2");
  admin.run("BEGIN; SET LOCAL ROLE latchkey_engine");
  EXPECT_EQ(admin.one(count), "2");
  admin.run("ROLLBACK; BEGIN; SET LOCAL ROLE latchkey_tenant");
  EXPECT_EQ(admin.one(count), "0");
  admin.run("ROLLBACK");
  // A reused key has one row: its latest run.
  admin.run("UPDATE latchkey.keys SET seq = 1 WHERE tenant = 'acme'");
  EXPECT_EQ(admin.one(count), "1");
}

}  // namespace
}  // namespace latchkey
