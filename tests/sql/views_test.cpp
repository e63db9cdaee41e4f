// The seeds' tables as views, the NOTIFY of dead letters, and unique outputs.
#include <fstream>
#include <regex>
#include <sstream>

#include "sql/sql_runs.hpp"
#include "support/sample_runs.hpp"

namespace latchkey {
namespace {

using namespace std::chrono_literals;

const std::string kOrg = "4b1a2c3d-1111-4222-8333-444455556666";

class SqlViews : public SqlTest {
 protected:
  std::vector<Value> begin(const std::string& arguments) {
    return org.row("SELECT run, fence FROM latchkey.begin_run(" + arguments + ")");
  }
  static std::string by(const std::vector<Value>& won) { return "'" + *won[0] + "', " + *won[1]; }
  std::string columns(const std::string& view) {
    return *admin.one(
        "SELECT string_agg(column_name || ' ' || data_type, ', ' ORDER BY ordinal_position) FROM "
        "information_schema.columns "
        "WHERE table_schema = 'latchkey' AND table_name = $1",
        {view});
  }
  Sql org = service(kOrg);
};

// covers: A4, C3
TEST_F(SqlViews, ColumnsAreTheSeeds) {
  EXPECT_EQ(columns("job_runs"),
            "id uuid, tenant_id uuid, function_name text, lock_key text, status text, input_params jsonb, result "
            "jsonb, error_message text, "
            "retry_count integer, started_at timestamp with time zone, completed_at timestamp with time zone, "
            "created_at timestamp with time zone, "
            "duration_ms integer");
  EXPECT_EQ(columns("sync_run_log"),
            "id uuid, org_id uuid, integration_type text, status text, started_at timestamp with time zone, "
            "completed_at timestamp with time zone, "
            "error_message text, retry_count integer, created_at timestamp with time zone");
  EXPECT_EQ(columns("dead_letter_queue"),
            "id uuid, org_id uuid, integration_type text, failed_run_id uuid, failure_reason text, created_at "
            "timestamp with time zone, "
            "acknowledged_at timestamp with time zone, acknowledged_by uuid, acknowledged_by_actor text, failure_code "
            "text, failures bigint, "
            "updated_at timestamp with time zone");
  EXPECT_EQ(columns("sync_errors"),
            "id uuid, tenant_id uuid, error_type text, error_code text, error_message text, error_details jsonb, "
            "source_entity_type text, "
            "source_entity_id uuid, is_resolved boolean, created_at timestamp with time zone, dead_letter_id uuid");
  EXPECT_EQ(columns("geoprocessing_idempotency"),
            "idempotency_key text, job_id text, result_hash text, result_payload jsonb, completed_at timestamp with "
            "time zone, "
            "expires_at timestamp with time zone, tenant_id uuid, process_id text, duration_ms bigint, "
            "features_processed bigint");
}

// covers: A4
TEST_F(SqlViews, JobRunsShowEveryState) {
  const auto done = begin("'detect-alerts', 'detect-alerts:acme:2026-02-06', input => '{\"day\": 6}'");
  org.run("SELECT latchkey.complete_run(" + by(done) + ", '{\"processed\": 3}')");
  admin.run("UPDATE latchkey.states SET at = first_attempt_at + 2500");
  EXPECT_EQ(org.row("SELECT id, tenant_id, function_name, lock_key, status, input_params, result, error_message, "
                    "retry_count, duration_ms, "
                    "completed_at - started_at, created_at = started_at FROM latchkey.job_runs"),
            (std::vector<Value>{done[0], kOrg, "detect-alerts", "detect-alerts:acme:2026-02-06", "completed",
                                "{\"day\": 6}", "{\"processed\": 3}", std::nullopt, "0", "2500", "00:00:02.5", "t"}));
  const auto failed = begin("'f', 'failed'");
  org.run("SELECT latchkey.fail_run(" + by(failed) + ", 'boom', retryable => false)");
  begin("'f', 'running'");
  const auto doubt = begin("'f', 'doubt', on_doubt => 'hold'");
  org.run("SELECT latchkey.fail_run(" + by(doubt) + ", 'm', outcome_unknown => true)");
  org.run("SELECT latchkey.enqueue('f', 'queued')");
  const Rows rows = org.rows(
      "SELECT lock_key, status, error_message, started_at IS NULL, completed_at IS NULL, duration_ms IS NULL FROM "
      "latchkey.job_runs WHERE function_name = 'f' ORDER BY 1");
  EXPECT_EQ(rows, (Rows{{"doubt", "in_doubt", "m", "f", "t", "t"},
                        {"failed", "failed", "boom", "f", "f", "f"},
                        {"queued", "queued", std::nullopt, "t", "t", "t"},
                        {"running", "running", std::nullopt, "f", "t", "t"}}));
  EXPECT_EQ(org.rows("SELECT org_id, integration_type, status FROM latchkey.sync_run_log WHERE status = 'running'"),
            (Rows{{kOrg, "f", "running"}}));
  const auto keyless = org.one("SELECT run FROM latchkey.enqueue('g')");
  EXPECT_EQ(org.one("SELECT lock_key FROM latchkey.job_runs WHERE function_name = 'g'"), keyless);
  for (const char* view : {"job_runs", "sync_run_log", "dead_letter_queue", "sync_errors", "geoprocessing_idempotency"})
    EXPECT_EQ(refusal(org, "DELETE FROM latchkey." + std::string(view)).state == "42501" ||
                  refusal(org, "DELETE FROM latchkey." + std::string(view)).state == "55000",
              true)
        << view;
}

// Noon, and so many seconds later, as a session in UTC writes it.
std::string noon(int later) {
  return "2026-02-06 12:00:" + std::string(later < 10 ? "0" : "") + std::to_string(later) + "+00";
}
std::string noon_ms(int later) { return std::to_string(to_ms(kNoon + later * 1s)); }

// covers: A7, C4
TEST_F(SqlViews, RepeatedFailuresAreShown) {
  org.run("SET timezone = 'UTC'");
  std::vector<Value> won;
  const auto try_again = [&] {
    won = begin("'sync-xledger', 'k', input => '{\"from\": 1}', retry_policy => '{\"retries\": 2, \"first_ms\": 0}'");
  };
  const auto fail = [&](const char* message) {
    org.run("SELECT latchkey.fail_run(" + by(won) + ", '" + message + "')");
  };
  const auto shown = [&] {
    const std::string what = "SELECT status, retry_count, error_message, completed_at IS NULL FROM latchkey.";
    const Rows run = org.rows(what + "job_runs");
    EXPECT_EQ(org.rows(what + "sync_run_log"), run);
    return run;
  };
  try_again();
  EXPECT_EQ(shown(), (Rows{{"running", "0", std::nullopt, "t"}}));
  fail("first");
  EXPECT_EQ(shown(), (Rows{{"queued", "0", "first", "t"}})) << "queued for its retry";
  try_again();
  EXPECT_EQ(shown(), (Rows{{"running", "1", "first", "t"}}));
  fail("second");
  EXPECT_EQ(org.one("SELECT count(*) FROM latchkey.sync_errors"), "0") << "not a permanent failure";
  try_again();
  fail("third");
  EXPECT_EQ(shown(), (Rows{{"failed", "2", "third", "f"}}));

  // The instants of its creation, first attempt and last failure are set to different values.
  admin.run("UPDATE latchkey.runs SET created_at = " + noon_ms(0) + "; UPDATE latchkey.states SET first_attempt_at = " +
            noon_ms(1) + ", at = " + noon_ms(31) + "; UPDATE latchkey.dead_letter_members SET at = " + noon_ms(31));
  EXPECT_EQ(
      org.rows("SELECT id, org_id, integration_type, status, started_at, completed_at, error_message, retry_count, "
               "created_at FROM latchkey.sync_run_log"),
      (Rows{{won[0], kOrg, "sync-xledger", "failed", noon(1), noon(31), "third", "2", noon(0)}}));
  EXPECT_EQ(org.rows("SELECT started_at, completed_at, created_at, duration_ms, result FROM latchkey.job_runs"),
            (Rows{{noon(1), noon(31), noon(0), "30000", std::nullopt}}));
  EXPECT_EQ(org.rows("SELECT error_code, error_message, created_at, is_resolved FROM latchkey.sync_errors"),
            (Rows{{"MAX_RETRIES_EXCEEDED", "third", noon(31), "f"}}));
  EXPECT_EQ(org.one("SELECT error_details = jsonb_build_object('function_name', 'sync-xledger', 'lock_key', 'k', "
                    "'input_params', '{\"from\": 1}'::jsonb, 'retry_count', 2, 'last_attempt_at', '" +
                    noon(31) + "'::timestamptz, 'effect', 'none') FROM latchkey.sync_errors"),
            "t")
      << *org.one("SELECT error_details FROM latchkey.sync_errors");
}

TEST_F(SqlViews, CancelledRunIsShown) {
  org.run("SET timezone = 'UTC'");
  RunHead head = a_head();
  head.tenant = kOrg;
  head.created_at = kNoon;
  Run run = a_run(Cancelled{kNoon + 9s, "CANCELLED"}, head);
  run.first_attempt_at = kNoon + 2s;
  run.attempt = 2;
  run.last_error = "first";
  store_run(admin, run);
  EXPECT_EQ(org.rows("SELECT status, retry_count, error_message, started_at, completed_at, duration_ms FROM "
                     "latchkey.job_runs"),
            (Rows{{"cancelled", "1", "first", noon(2), noon(9), "7000"}}));
  EXPECT_EQ(
      org.rows("SELECT id, org_id, integration_type, status, started_at, completed_at, error_message, retry_count, "
               "created_at FROM latchkey.sync_run_log"),
      (Rows{{to_string(head.id), kOrg, "f", "cancelled", noon(2), noon(9), "first", "1", noon(0)}}));
  EXPECT_EQ(org.one("SELECT count(*) FROM latchkey.sync_errors"), "0") << "no error to resolve";
}

TEST_F(SqlViews, RunsInBlocksAndOutcomesAreShown) {
  const Instant now = database_now(admin);
  for (const int seq : {1, 2, 3}) {
    RunHead head = a_head();
    head.tenant = kOrg;
    head.id = make_uuid_v7(now, static_cast<std::uint64_t>(seq), 5);
    head.key = "k" + std::to_string(seq);
    head.key_hash = hash_key(kOrg, "f", head.key);
    store_run(admin, a_job_run(Queued{now}, head));
  }
  admin.run("DELETE FROM latchkey.states; INSERT INTO latchkey.outcomes VALUES (1, 1, '" + kOrg +
            "', 4, 1000, 1700, '[1]'); "
            "INSERT INTO latchkey.blocks VALUES (2, 2, '" +
            kOrg +
            "', 'f', 0, 0, 10, 2000, 9999999999999, 60000, gen_random_uuid()); "
            "INSERT INTO latchkey.blocks (lo, hi, tenant, function, priority, due) VALUES (3, 3, '" +
            kOrg + "', 'f', 0, 0)");
  EXPECT_EQ(org.rows("SELECT lock_key, status, result, duration_ms, extract(epoch FROM started_at)::text FROM "
                     "latchkey.job_runs ORDER BY 1"),
            (Rows{{"k1", "completed", "[1]", "700", "1.000000"},
                  {"k2", "running", std::nullopt, std::nullopt, "2.000000"},
                  {"k3", "queued", std::nullopt, std::nullopt, std::nullopt}}));
}

TEST_F(SqlViews, AnyBytesCanBeRead) {
  const std::vector<std::string> bodies{
      "",
      "\\x00",
      "\\xff",
      "\\xc3",
      "\\x7b",
      "\\x5c",
      "\\x22005c2275303030302222",
      "\\x2231653939393939393922",
      "\\x3165393939393939",
      "\\xefbbbf7b7d",
      "\\x5b31653133313037312c7b2261223a2d312e35452d31363030307d5d"};  // [1e131071,{"a":-1.5E-16000}]
  int number = 0;
  for (const std::string& body : bodies) {
    const std::string key = "k" + std::to_string(++number);
    const auto won = begin("'f', '" + key + "', input_bytes => '" + body + "'");
    org.run("SELECT latchkey.complete_run(" + by(won) + ", result_bytes => '" + body + "')");
    const auto bad = begin("'g', '" + key + "', retries => 0, input_bytes => '" + body + "'");
    org.run("SELECT latchkey.fail_run(" + by(bad) + ", 'm')");
    if (!body.empty()) admin.rows("UPDATE latchkey.states SET last_error = $1; ", {body});
  }
  admin.run(
      "UPDATE latchkey.runs SET key = '\\xff00' WHERE function = 'g'; UPDATE latchkey.dead_letter_members SET key = "
      "'\\xff', reason = '\\xfe00'; UPDATE latchkey.dead_letters SET reason = '\\xfe'");
  for (const char* view : {"job_runs", "sync_run_log", "dead_letter_queue", "sync_errors", "geoprocessing_idempotency"})
    EXPECT_GT(org.rows("SELECT v::text FROM latchkey." + std::string(view) + " v").size(), 0u) << view;
  EXPECT_LT(std::stoi(*org.one("SELECT max(length(v::text)) FROM latchkey.job_runs v")), 2000)
      << "few bytes must not become many";
  begin(R"('f', 'named', input => '{"id": "3b9e1234-0000-4000-8000-1e9990000000", "said": "\"1e9999", "n": 1e99}')");
  EXPECT_EQ(org.one("SELECT input_params ->> 'id' FROM latchkey.job_runs WHERE input_params ->> 'n' LIKE '1000%'"),
            "3b9e1234-0000-4000-8000-1e9990000000");
  EXPECT_EQ(org.one("SELECT failure_reason FROM latchkey.dead_letter_queue"), "\\376");
  EXPECT_EQ(admin.row("SELECT latchkey.as_text('\\x61c3bc'), latchkey.as_text('\\x5c41'), latchkey.as_json('{\"a\": "
                      "1}'), latchkey.as_json('x'), latchkey.as_json(NULL)"),
            (std::vector<Value>{"a\xc3\xbc", "\\A", "{\"a\": 1}", "\"x\"", std::nullopt}));
}

TEST_F(SqlViews, OtherNamesGetAVersionFiveUuid) {
  EXPECT_EQ(admin.one("SELECT latchkey.name_uuid('acme')"), "38394337-9aff-503a-b737-e711338283d4");
  EXPECT_EQ(admin.one("SELECT latchkey.name_uuid('python.org')"), "886313e1-3b8a-5372-9b90-0c9aee199e5d");
  EXPECT_EQ(admin.one("SELECT latchkey.name_uuid($1)", {kOrg}), kOrg);
  EXPECT_NE(admin.one("SELECT latchkey.name_uuid(upper($1))", {kOrg}), kOrg) << "another name, another UUID";
  Sql acme = service("acme");
  acme.run("SELECT latchkey.enqueue('f')");
  EXPECT_EQ(acme.one("SELECT tenant_id FROM latchkey.job_runs"), "38394337-9aff-503a-b737-e711338283d4");
  EXPECT_EQ(admin.one("SELECT id FROM latchkey.tenants WHERE name = 'acme'"), "38394337-9aff-503a-b737-e711338283d4");
  // A tenant whose name is another tenant's UUID gets no error and none of its rows.
  Sql twin = service("38394337-9aff-503a-b737-e711338283d4");
  twin.run("SELECT latchkey.enqueue('g')");
  EXPECT_EQ(twin.rows("SELECT function_name, tenant_id FROM latchkey.job_runs"),
            (Rows{{"g", "38394337-9aff-503a-b737-e711338283d4"}}));
}

// covers: C5, C8
TEST_F(SqlViews, ExhaustedRunOpensANotifiedDeadLetter) {
  Sql listener = connect();
  listener.run("LISTEN dead_letter_inserted");
  const auto notified = [&] {
    listener.run("SELECT 1");
    return listener.notifications();
  };
  const std::string notice =
      "dead_letter_inserted {\"orgId\" : \"" + kOrg + "\", \"integrationType\" : \"sync-xledger\"}";
  const auto first = begin("'sync-xledger', 'a', retries => 0, input => '{\"from\": 1}'");
  org.run("SELECT latchkey.fail_run(" + by(first) + ", 'password hunter2 refused')");
  EXPECT_EQ(notified(), std::vector{notice});
  const auto second = begin("'sync-xledger', 'b', retries => 0");
  org.run("SELECT latchkey.fail_run(" + by(second) + ", 'again', retryable => false)");
  EXPECT_EQ(notified(), std::vector{notice}) << "an update notifies, too";
  EXPECT_EQ(org.rows("SELECT org_id, integration_type, failed_run_id, failure_reason, acknowledged_at, "
                     "acknowledged_by, failures FROM latchkey.dead_letter_queue"),
            (Rows{{kOrg, "sync-xledger", second[0], "again", std::nullopt, std::nullopt, "2"}}));
  EXPECT_EQ(org.rows("SELECT tenant_id, error_type, error_code, error_message, source_entity_type, source_entity_id, "
                     "is_resolved, error_details ->> 'function_name', "
                     "error_details ->> 'lock_key', nullif(error_details -> 'input_params', 'null'), error_details ->> "
                     "'retry_count', "
                     "(error_details ->> 'last_attempt_at')::timestamptz = created_at "
                     "FROM latchkey.sync_errors ORDER BY created_at"),
            (Rows{{kOrg, "job_failure", "MAX_RETRIES_EXCEEDED", "password hunter2 refused", "job_run", first[0], "f",
                   "sync-xledger", "a", "{\"from\": 1}", "0", "t"},
                  {kOrg, "job_failure", "EXECUTION_ERROR", "again", "job_run", second[0], "f", "sync-xledger", "b",
                   std::nullopt, "0", "t"}}));
  // A reopened run counts as resolved; after an acknowledgement the next failure opens another entry.
  const auto again = begin("'sync-xledger', 'a'");
  EXPECT_EQ(again[0], first[0]);
  EXPECT_EQ(org.one("SELECT string_agg(is_resolved::text, ' ' ORDER BY created_at) FROM latchkey.sync_errors"),
            "true false");
  admin.run("INSERT INTO latchkey.members VALUES ('" + kOrg + "', 'ada', 'org-admin')");
  org.run("SELECT latchkey.acknowledge_dlq_entry(id, 'ada') FROM latchkey.dead_letter_queue");
  EXPECT_EQ(notified(), std::vector{notice});
  org.run("SELECT latchkey.fail_run(" + by(again) + ", 'third', retryable => false)");
  EXPECT_EQ(org.one("SELECT count(*) FROM latchkey.dead_letter_queue"), "2");
  // The dead letter outlives its run.
  admin.run("DELETE FROM latchkey.runs; DELETE FROM latchkey.states");
  EXPECT_EQ(org.one("SELECT count(*) FROM latchkey.dead_letter_queue"), "2");
}

// The first failure opens an entry, the next one changes it.
// covers: C3
TEST_F(SqlViews, DeadLetterShowsItsLatestFailure) {
  const auto fail = [&](const std::string& key, const std::string& how) {
    org.run("SELECT latchkey.fail_run(" + by(begin("'f', '" + key + "', retries => 0")) + ", 'm'" + how + ")");
  };
  const std::string times =
      "SELECT failure_code, extract(epoch FROM created_at)::bigint, extract(epoch FROM "
      "updated_at)::bigint, failures FROM latchkey.dead_letter_queue";
  fail("a", ", retryable => false");
  EXPECT_EQ(org.one("SELECT created_at = updated_at AND abs(extract(epoch FROM now() - created_at)) < 60 FROM "
                    "latchkey.dead_letter_queue"),
            "t");
  admin.run("UPDATE latchkey.dead_letters SET opened_at = 1000, updated_at = 2000");
  EXPECT_EQ(org.rows(times), (Rows{{"EXECUTION_ERROR", "1", "2", "1"}}));
  fail("b", "");
  const Rows changed = org.rows(times);
  const Value of_the_second = org.one("SELECT extract(epoch FROM max(created_at))::bigint FROM latchkey.sync_errors");
  EXPECT_EQ(changed, (Rows{{"MAX_RETRIES_EXCEEDED", "1", of_the_second, "2"}}));
}

// covers: D2
TEST_F(SqlViews, CompletedRunsAreShownAsCacheEntries) {
  const auto won = begin("'buffer', 'abc123', window_span => '7 days', input => '{\"job_id\": \"job-9\"}'");
  org.run("SELECT latchkey.complete_run(" + by(won) + ", '{\"features_processed\": 12, \"area\": 3}')");
  admin.run("UPDATE latchkey.states SET at = first_attempt_at + 40");
  EXPECT_EQ(org.row("SELECT idempotency_key, job_id, result_hash, result_payload, expires_at - completed_at, "
                    "tenant_id, process_id, duration_ms, features_processed FROM latchkey.geoprocessing_idempotency"),
            (std::vector<Value>{"abc123", "job-9",
                                org.one("SELECT encode(sha256('{\"features_processed\": 12, \"area\": 3}'), 'hex')"),
                                "{\"area\": 3, \"features_processed\": 12}", "7 days", kOrg, "buffer", "40", "12"}));
  const auto plain = begin("'buffer', 'def456'");
  org.run("SELECT latchkey.complete_run(" + by(plain) + ", '7')");
  EXPECT_EQ(org.row("SELECT job_id, result_payload, features_processed FROM latchkey.geoprocessing_idempotency WHERE "
                    "idempotency_key = 'def456'"),
            (std::vector<Value>{plain[0], "7", std::nullopt}));
  begin("'buffer', 'open'");
  EXPECT_EQ(org.one("SELECT count(*) FROM latchkey.geoprocessing_idempotency"), "2") << "an open run has no entry";
}

// A3: the statements of docs/sql.md, on the seed's two tables.
// covers: A3, B10
TEST_F(SqlViews, UniqueOutputsAsDocumented) {
  std::stringstream page;
  page << std::ifstream(LATCHKEY_SOURCE_DIR "/docs/sql.md").rdbuf();
  const std::string text = page.str();
  const std::size_t from = text.find("```sql", text.find("<!-- unique outputs -->")) + 6;
  const std::string statements = text.substr(from, text.find("```", from) - from);
  admin.run(
      "CREATE TABLE alert_instances (id bigserial, tenant_id uuid, alert_config_id uuid, external_object_id text, "
      "title text, status text, created_at timestamptz NOT NULL DEFAULT now());"
      "CREATE TABLE decision_cards (id bigserial, tenant_id uuid, alert_instance_id bigint, metric_code text, "
      "period_start date, status text)");
  admin.run(statements);
  const auto alert = [&](const std::string& object, const std::string& status, const std::string& at) {
    return admin
        .rows(
            "INSERT INTO alert_instances (tenant_id, alert_config_id, external_object_id, status, created_at) VALUES "
            "('" +
            kOrg + "', NULL, " + object + ", '" + status + "', '" + at + "') ON CONFLICT DO NOTHING RETURNING id")
        .size();
  };
  EXPECT_EQ(alert("'o1'", "active", "2026-02-06 10:00Z"), 1u);
  EXPECT_EQ(alert("'o1'", "open", "2026-02-06 23:59Z"), 0u) << "the same alert, the same day";
  EXPECT_EQ(alert("'o1'", "active", "2026-02-07 00:00Z"), 1u);
  EXPECT_EQ(alert("'o1'", "resolved", "2026-02-06 11:00Z"), 1u) << "a closed alert does not count";
  EXPECT_EQ(alert("NULL", "triggered", "2026-02-06 10:00Z"), 1u);
  EXPECT_EQ(alert("''", "triggered", "2026-02-06 10:00Z"), 0u) << "no object is one object";
  admin.run("UPDATE alert_instances SET status = 'resolved'");
  EXPECT_EQ(alert("'o1'", "active", "2026-02-06 12:00Z"), 1u);
  const auto card = [&](const std::string& metric, const std::string& status) {
    return admin
        .rows("INSERT INTO decision_cards (tenant_id, alert_instance_id, metric_code, period_start, status) VALUES ('" +
              kOrg + "', 1, " + metric + ", NULL, '" + status + "') ON CONFLICT DO NOTHING RETURNING id")
        .size();
  };
  EXPECT_EQ(card("'m'", "OPEN"), 1u);
  EXPECT_EQ(card("'m'", "IN_PROGRESS"), 0u);
  EXPECT_EQ(card("'m'", "DONE"), 1u);
  EXPECT_EQ(card("NULL", "OPEN"), 1u);
  EXPECT_EQ(card("NULL", "OPEN"), 0u);
  // Another value in any one of the columns is another row.
  const auto insert = [&](const std::string& table, const std::vector<std::string>& values) {
    std::string list;
    for (const std::string& value : values) list += (list.empty() ? "" : ", ") + value;
    return admin.rows("INSERT INTO " + table + " VALUES (" + list + ") ON CONFLICT DO NOTHING RETURNING 1").size();
  };
  const std::string one = "'00000000-0000-4000-8000-000000000001'", two = "'00000000-0000-4000-8000-000000000002'";
  const auto expect_each_counts = [&](const std::string& table, const std::vector<std::string>& row,
                                      const std::vector<std::string>& other) {
    EXPECT_EQ(insert(table, row), 1u);
    EXPECT_EQ(insert(table, row), 0u);
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (other[i] == row[i]) continue;
      std::vector<std::string> changed = row;
      changed[i] = other[i];
      EXPECT_EQ(insert(table, changed), 1u) << table << ": " << other[i];
      EXPECT_EQ(insert(table, changed), 0u) << table << ": " << other[i];
    }
  };
  expect_each_counts("alert_instances (tenant_id, alert_config_id, external_object_id, created_at, title, status)",
                     {one, one, "'x'", "'2026-03-01 10:00Z'", "'t'", "'open'"},
                     {two, two, "'y'", "'2026-03-02 10:00Z'", "'t'", "'open'"});
  expect_each_counts("decision_cards (tenant_id, alert_instance_id, metric_code, period_start, status)",
                     {one, "1", "'m'", "'2026-03-01'", "'OPEN'"}, {two, "2", "'n'", "'2026-03-02'", "'OPEN'"});
  EXPECT_EQ(insert("alert_instances (tenant_id, alert_config_id, external_object_id, created_at, title, status)",
                   {one, one, "'x'", "'2026-03-01 10:00Z'", "'another title'", "'active'"}),
            0u)
      << "columns outside the index do not count";
  admin.run("DROP TABLE alert_instances, decision_cards");
}

}  // namespace
}  // namespace latchkey
