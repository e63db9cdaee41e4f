// What a tenant that speaks SQL itself can find out by how its statements were carried out: EXPLAIN ANALYZE, and the
// counts of what its transaction read. What is another's looks as what is not there.
#include <algorithm>
#include <map>
#include <sstream>

#include "sql/sql_hostile.hpp"

namespace latchkey {
namespace {

const std::string kNobodysId = "0190a6b2-7c3d-7abc-8def-0123456789ab";

class SqlCovert : public SqlHostile {
 protected:
  SqlCovert() {
    // Enough for indexes to be worth it.
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
  // How a statement was carried out, and what the session's tables were read for it; ? is the value in it.
  std::string trace(Sql& session, std::string statement, const std::string& value) {
    statement.replace(statement.find('?'), 1, value);
    const std::string counts =
        "SELECT coalesce(string_agg(format('%s %s %s %s %s', relname, seq_scan, seq_tup_read, idx_scan, "
        "idx_tup_fetch), "
        "' ' ORDER BY relname), '') FROM pg_stat_xact_all_tables WHERE schemaname = 'latchkey'";
    session.run("BEGIN");
    std::string told;
    try {
      for (const auto& row : session.rows("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) " + statement))
        told += *row[0] + "\n";
    } catch (const SqlError& error) {
      told = error.state + error.what();
      session.run("ROLLBACK; BEGIN");
    }
    session.run("ROLLBACK");
    // The counts are the session's that were not handed in yet: what one statement added to them.
    session.run("BEGIN");
    const std::string before = *session.one(counts);
    try {
      session.run("SAVEPOINT s; " + statement);
    } catch (const SqlError& error) {
      told += error.state;
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
      told += table;
      for (const long sum : sums) told += " " + std::to_string(sum);
      told += "\n";
    }
    return without(told, value);
  }
};

TEST_F(SqlCovert, WhatIsAnothersLooksAsWhatIsNotThere) {
  const std::string letter = *foreign_[2], run = *foreign_[0], uuid = *foreign_[3];
  const std::string hash = *admin.one("SELECT hash FROM latchkey.runs WHERE id = $1", {run});
  struct Probe {
    std::string statement, foreign, absent;
  };
  const std::vector<Probe> probes{
      {"SELECT FROM latchkey.keys WHERE hash = '?'", hash, kNobodysId},
      {"SELECT FROM latchkey.runs WHERE hash = '?'", hash, kNobodysId},
      {"SELECT FROM latchkey.runs WHERE id = '?'", run, kNobodysId},
      {"SELECT FROM latchkey.runs WHERE tenant = '?'", "globex", "nobody"},
      {"SELECT FROM latchkey.job_runs WHERE id = '?'", run, kNobodysId},
      {"SELECT FROM latchkey.sync_run_log WHERE id = '?'", run, kNobodysId},
      {"SELECT FROM latchkey.job_runs WHERE tenant_id = '?'", uuid, kNobodysId},
      {"SELECT FROM latchkey.tenants WHERE id = '?'", uuid, kNobodysId},
      {"SELECT FROM latchkey.tenants WHERE name = '?'", "globex", "nobody"},
      {"SELECT FROM latchkey.dead_letter_queue WHERE id = '?'", letter, kNobodysId},
      {"SELECT FROM latchkey.dead_letter_queue WHERE failed_run_id = '?'", run, kNobodysId},
      {"SELECT FROM latchkey.sync_errors WHERE source_entity_id = '?'", run, kNobodysId},
      {"SELECT FROM latchkey.geoprocessing_idempotency WHERE idempotency_key = '?'", "globex-done", "nobody"},
      {"SELECT FROM latchkey.members WHERE actor = '?'", "globex-admin", "nobody"},
      {"SELECT latchkey.tenant_id('?')", "globex", "nobody"},
      {"SELECT latchkey.is_org_admin('?')", "globex-admin", "nobody"},
      {"SELECT latchkey.begin_run('f', '?')", "globex-open", "nobody"},
      {"SELECT latchkey.begin_run('f', '?')", "globex-done", "nobody"},
      {"SELECT latchkey.enqueue('f', '?')", "globex-done", "nobody"},
  };
  Sql bound = connect(bound_role("acme")), believed = service("acme");
  for (Sql* session : {&bound, &believed})
    for (const char* scans : {"on", "off"}) {
      session->run(std::string("SET enable_seqscan = ") + scans + "; SET enable_bitmapscan = " + scans);
      for (const auto& [statement, foreign, absent] : probes) {
        trace(*session, statement, absent);  // what the session has to look up once
        EXPECT_EQ(trace(*session, statement, foreign), trace(*session, statement, absent)) << statement;
      }
    }
  // The test can fail: what is the tenant's own looks otherwise.
  EXPECT_NE(trace(bound, "SELECT FROM latchkey.tenants WHERE name = '?'", "acme"),
            trace(bound, "SELECT FROM latchkey.tenants WHERE name = '?'", "nobody"));
}

// The one function that looks into `keys` for a reader does so for the reader's own runs.
TEST_F(SqlCovert, NobodyAsksWhetherAnothersKeyIsThere) {
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
  EXPECT_EQ(trace(session, statement, *foreign[1]), trace(session, statement, kNobodysId));
  EXPECT_EQ(trace(session, statement, *foreign[1]).find("keys"), std::string::npos);
}

TEST_F(SqlCovert, ReadersOfAllTenantsSeeWhatEachKept) {
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
  // A key that was used again has one row: its latest.
  admin.run("UPDATE latchkey.keys SET seq = 1 WHERE tenant = 'acme'");
  EXPECT_EQ(admin.one(count), "1");
}

}  // namespace
}  // namespace latchkey
