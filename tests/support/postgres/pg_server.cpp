#include "support/postgres/pg_server.hpp"

#include <gtest/gtest.h>

namespace latchkey {

PgServer& PgServer::instance() {
  static PgServer server;
  return server;
}

std::string PgServer::borrow_database() {
  if (free_.empty()) {
    const std::string name = "t" + std::to_string(++created_);
    PgClient(url("postgres")).execute("CREATE DATABASE " + name);
    return url(name);
  }
  std::string url_of = free_.back();
  free_.pop_back();
  return url_of;
}

std::string PgServer::find_contradiction(PgClient& admin) {
  if (admin.ask_one("SELECT to_regclass('latchkey.settlements') IS NULL") == "t") return "";
  return admin.ask_one(
      "SELECT coalesce(string_agg(line, ', '), '') FROM ("
      "SELECT format('%s has %s entries of %s', s.seq, found.entries, expected.entries) AS line "
      "FROM latchkey.all_states s "
      "CROSS JOIN LATERAL (SELECT s.generation - (s.status < 3)::int AS entries) expected "
      "CROSS JOIN LATERAL (SELECT count(*) AS entries FROM latchkey.settlements t WHERE t.seq = s.seq AND t.generation "
      "BETWEEN 1 AND expected.entries) found "
      "WHERE found.entries <> expected.entries "
      "UNION ALL SELECT format('%s has an entry for %s', t.seq, t.generation) "
      "FROM latchkey.settlements t LEFT JOIN latchkey.all_states s USING (seq) "
      "WHERE coalesce(t.generation > s.generation - (s.status < 3)::int, true) "
      // In the order of `lo`, a range that overlaps any range also overlaps its neighbour.
      "UNION ALL SELECT format('%s to %s overlap %s to %s', kind, hi, before, hi_before) FROM ("
      "SELECT *, lag(kind) OVER w AS before, lag(hi) OVER w AS hi_before FROM ("
      "SELECT 'block ' || lo AS kind, lo, hi FROM latchkey.blocks "
      "UNION ALL SELECT 'outcome ' || lo, lo, hi FROM latchkey.outcomes "
      "UNION ALL SELECT 'row ' || seq, seq, seq FROM latchkey.states) places WINDOW w AS (ORDER BY lo, kind)) placed "
      "WHERE hi_before >= lo "
      "LIMIT 20) lines");
}

void PgServer::give_back(const std::string& url_of) {
  PgClient admin(url_of);
  admin.execute("SET search_path = pg_catalog");  // some tests leave operators in the schema public
  EXPECT_EQ(find_contradiction(admin), "");
  admin.execute("SET client_min_messages = error; DROP SCHEMA IF EXISTS latchkey CASCADE");
  // The next test must not find the operators of this one on its search_path.
  if (admin.ask_one("SELECT EXISTS (SELECT FROM pg_operator WHERE oprnamespace = 'public'::regnamespace)") == "t")
    admin.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public; GRANT USAGE ON SCHEMA public TO PUBLIC");
  free_.push_back(url_of);
}

// Tests leave few rows, so DELETE is faster than TRUNCATE, which creates new files for all tables and indexes. The
// locks wait for sessions that still write.
void PgServer::empty(PgClient& admin) {
  admin.execute(
      "DO $$ DECLARE one regclass; BEGIN "
      "EXECUTE (SELECT 'LOCK TABLE ' || string_agg(oid::regclass::text, ', ') FROM pg_class WHERE relkind = 'r' AND "
      "relnamespace = 'latchkey'::regnamespace); "
      "FOR one IN SELECT oid FROM pg_class WHERE relkind = 'r' AND relnamespace = 'latchkey'::regnamespace AND relname "
      "NOT IN ('migrations', 'latches') LOOP EXECUTE format('DELETE FROM %s', one); END LOOP; "
      "PERFORM setval(seqrelid, seqstart, false) FROM pg_sequence JOIN pg_class ON pg_class.oid = seqrelid WHERE "
      "relnamespace = 'latchkey'::regnamespace; END $$");
}

void PgServer::empty(const std::string& url_of) {
  PgClient admin(url_of);
  empty(admin);
}

}  // namespace latchkey
