// Two tenants that know of each other, and helpers with which one of them attacks the other.
#pragma once

#include "sql/sql_fixture.hpp"

namespace latchkey {

// Two tenants with rows in every table. acme must not read any text with "globex" in it.
class SqlHostile : public SqlTest {
 protected:
  SqlHostile() {
    for (const char* tenant : {"acme", "globex"}) fill(tenant);
    foreign_ = admin.row(
        "SELECT (SELECT id FROM latchkey.runs WHERE tenant = 'globex' AND convert_from(key, 'UTF8') = 'globex-open'), "
        "(SELECT fence FROM latchkey.states s JOIN latchkey.runs r USING (seq) WHERE s.tenant = 'globex' AND "
        "convert_from(r.key, 'UTF8') = 'globex-open'), "
        "(SELECT id FROM latchkey.dead_letters WHERE tenant = 'globex'), latchkey.name_uuid('globex')");
  }

  void fill(const std::string& tenant) {
    Sql session = service(tenant);
    const auto won = session.row("SELECT run, fence FROM latchkey.begin_run('f', '" + tenant +
                                 "-failed', retries => 0, input => '" + tenant + "')");
    session.run("SELECT latchkey.fail_run('" + *won[0] + "', " + *won[1] + ", 'secret of " + tenant + "')");
    const auto done = session.row("SELECT run, fence FROM latchkey.begin_run('f', '" + tenant + "-done')");
    session.run("SELECT latchkey.complete_run('" + *done[0] + "', " + *done[1] + ", 'result of " + tenant + "')");
    const auto open = session.row("SELECT run, fence FROM latchkey.begin_run('f', '" + tenant + "-open')");
    session.run("SELECT latchkey.enqueue('" + tenant + "-job', after => ARRAY['" + *open[0] + "']::uuid[])");
    session.run("SELECT latchkey.declare_transition('" + tenant + "', 'a', 'go', 'b'); SELECT latchkey.transition('" +
                tenant + "', 'e', 'go', start => 'a')");
    const std::string number = tenant == "acme" ? "900001" : "910001";
    admin.run("INSERT INTO latchkey.blocks (lo, hi, tenant, function, priority, due) VALUES (" + number + ", " +
              number + ", '" + tenant + "', '" + tenant +
              "', 0, 0);"
              "INSERT INTO latchkey.outcomes VALUES (" +
              number + ", " + number + ", '" + tenant + "', 1, 0, 1, '" + tenant +
              "');"
              "INSERT INTO latchkey.duplicates VALUES (" +
              number + ", '" + tenant + "', '" + tenant +
              "');"
              "INSERT INTO latchkey.dead_letter_steps SELECT seq, generation, tenant, 2, '" +
              tenant + "', 1, '' FROM latchkey.dead_letter_members WHERE tenant = '" + tenant +
              "';"
              "INSERT INTO latchkey.members VALUES ('" +
              tenant + "', '" + tenant + "-admin', 'org-admin'), ('" + tenant + "', '" + tenant +
              "-viewer', 'viewer'), ('" + tenant + "', '" + tenant +
              "-service', 'service');"
              "INSERT INTO latchkey.tokens VALUES ('" +
              tenant + "', '', '', 0, '" + tenant +
              "', 0);"
              "INSERT INTO latchkey.tenant_roles VALUES ('" +
              tenant + "-role', '" + tenant +
              "');"
              "INSERT INTO latchkey.batches VALUES (gen_random_uuid(), 0)");
  }

  // One call of every function that writes, with which a service of acme succeeds; {actor} is for acknowledging.
  std::vector<std::string> writing_calls() {
    const auto own = admin.row(
        "SELECT r.id, s.fence, (SELECT id FROM latchkey.dead_letters WHERE tenant = 'acme') FROM latchkey.runs r JOIN "
        "latchkey.states s USING (seq) WHERE convert_from(r.key, 'UTF8') = 'acme-open'");
    const std::string owned = "('" + *own[0] + "', " + *own[1];
    return {"begin_run('f', 'new')",
            "enqueue('f')",
            "heartbeat" + owned + ")",
            "complete_run" + owned + ")",
            "fail_run" + owned + ", 'm')",
            "acknowledge_dlq_entry('" + *own[2] + "', '{actor}')",
            "declare_transition('m', 'a', 'b', 'c')",
            "transition('acme', 'new', 'go', start => 'a')"};
  }
  // Every row of every table.
  std::string everything() {
    std::string all;
    for (const auto& row : admin.rows("SELECT oid::regclass FROM pg_class WHERE relnamespace = "
                                      "'latchkey'::regnamespace AND relkind = 'r' ORDER BY 1"))
      all +=
          *row[0] + *admin.one("SELECT coalesce(string_agg(t::text, ' ' ORDER BY t::text), '') FROM " + *row[0] + " t");
    return all;
  }

  std::vector<std::string> relations() {
    std::vector<std::string> names;
    for (const auto& row : admin.rows("SELECT oid::regclass FROM pg_class WHERE relnamespace = "
                                      "'latchkey'::regnamespace AND relkind IN ('r', 'v') ORDER BY 1"))
      names.push_back(*row[0]);
    return names;
  }
  bool is_foreign(const std::string& text) const {
    return text.find("globex") != text.npos || text.find("676c6f626578") != text.npos ||
           text.find(*foreign_[0]) != text.npos || text.find(*foreign_[2]) != text.npos ||
           text.find(*foreign_[3]) != text.npos;
  }
  // The number of rows that the session can read; fails if one of them is globex's.
  std::size_t read_all(Sql& session) {
    std::size_t seen = 0;
    for (const std::string& name : relations()) {
      const bool in_transaction = session.in_transaction();
      if (in_transaction) session.run("SAVEPOINT before");
      try {
        for (const auto& row : session.rows("SELECT t::text FROM " + name + " t")) {
          EXPECT_FALSE(is_foreign(*row[0])) << name << ": " << *row[0];
          ++seen;
        }
      } catch (const SqlError& error) {
        EXPECT_EQ(error.state, "42501") << name << ": " << error.what();
        if (in_transaction) session.run("ROLLBACK TO before");
      }
    }
    return seen;
  }
  // Every way of writing to a relation, each of its columns by itself: it might be granted alone.
  std::vector<std::string> writes_to(const std::string& name) {
    std::vector<std::string> writes{"DELETE FROM " + name, "INSERT INTO " + name + " SELECT t.* FROM " + name + " t",
                                    "TRUNCATE " + name, "SELECT FROM " + name + " FOR UPDATE",
                                    "SELECT FROM " + name + " FOR KEY SHARE"};
    for (const auto& column : admin.rows("SELECT quote_ident(attname) FROM pg_attribute WHERE attrelid = "
                                         "$1::text::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = ''",
                                         {name}))
      writes.push_back("UPDATE " + name + " SET " + *column[0] + " = " + *column[0]);
    return writes;
  }
  void expect_writes_nothing(Sql& session) {
    for (const std::string& name : relations())
      for (const std::string& write : writes_to(name)) {
        try {
          session.run(write);
          ADD_FAILURE() << write;
        } catch (const SqlError& error) {
          EXPECT_TRUE(error.state == "42501" || error.state == "55000" || error.state == "42809" ||
                      error.state == "0A000")
              << write << ": " << error.what();
        }
      }
  }

  std::vector<Value> foreign_;  // globex's open run, its fence, its dead letter, its UUID
};

}  // namespace latchkey
