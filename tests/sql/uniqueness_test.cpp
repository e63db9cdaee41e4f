// Unique indexes and checks hold against every writer, the engine included. Each of them must reject its case, and the
// test fails if a new one has no case here.
#include <regex>
#include <set>

#include "sql/sql_fixture.hpp"

namespace latchkey {
namespace {

// Two rows that differ in all but what must be unique.
struct Twins {
  const char* index;
  const char* table;
  const char* first;
  const char* second;
};
#define LK_ID(number) "'00000000-0000-4000-8000-00000000000" #number "'"
const Twins kTwins[] = {
    // A key's one latest run: C1, A4's lock_key.
    {"keys_pkey", "keys", LK_ID(1) ", 'acme', 1", LK_ID(1) ", 'globex', 2"},
    // C8: one open entry for a tenant's function.
    {"dead_letters_open", "dead_letters", "1, " LK_ID(1) ", 'acme', 'f', 'E', '', " LK_ID(7) ", 1, 1, 1, NULL, ''",
     "2, " LK_ID(2) ", 'acme', 'f', 'G', 'x', " LK_ID(8) ", 2, 2, 2, NULL, 'ada'"},
    {"dead_letters_pkey", "dead_letters", "1, " LK_ID(1) ", 'acme', 'f', 'E', '', " LK_ID(7) ", 1, 1, 1, NULL, ''",
     "1, " LK_ID(2) ", 'globex', 'g', 'G', 'x', " LK_ID(8) ", 2, 2, 2, 2, 'ada'"},
    {"dead_letters_id", "dead_letters", "1, " LK_ID(1) ", 'acme', 'f', 'E', '', " LK_ID(7) ", 1, 1, 1, NULL, ''",
     "2, " LK_ID(1) ", 'acme', 'g', 'G', 'x', " LK_ID(8) ", 2, 2, 2, 2, 'ada'"},
    {"latches_pkey", "latches", "'a'", "'a'"},
    {"dead_letter_members_pkey", "dead_letter_members", "1, 2, 'acme', 1, " LK_ID(1) ", 'k', 'E', '', 1, 0, 1",
     "1, 2, 'globex', 2, " LK_ID(2) ", 'l', 'G', 'x', 2, 1, 2"},
    {"dead_letter_steps_pkey", "dead_letter_steps", "1, 2, 'acme', 0, 'ada', 1, ''",
     "1, 2, 'globex', 0, 'bob', 2, 'x'"},
    {"batches_pkey", "batches", LK_ID(1) ", 1", LK_ID(1) ", -2"},
    {"tenants_pkey", "tenants", "'acme', " LK_ID(1), "'acme', " LK_ID(2)},
    {"tokens_pkey", "tokens", "'t', 'secret', 'n', 1, '', 1, NULL, NULL", "'t', 'other', 'm', 2, 'acme', 2, 3, 4"},
    {"tenant_roles_pkey", "tenant_roles", "'r', 'acme', 'viewer'", "'r', 'globex', 'service'"},
    {"members_pkey", "members", "'acme', 'ada', 'viewer'", "'acme', 'ada', 'admin'"},
    {"place_pkey", "place", "true, '1', '1'", "true, '2', '2'"},
    {"runs_id", "runs", "1, " LK_ID(1) ", 'acme', 'f', NULL, NULL, 0, 0, NULL, 3, NULL, 0, 0, 0, NULL, NULL, NULL",
     "2, " LK_ID(1) ", 'acme', 'g', 'k', " LK_ID(3) ", 1, 1, 'p', 4, '', 1, 1, 1, '', '', " LK_ID(4)},
    {"runs_pkey", "runs", "1, " LK_ID(1) ", 'acme', 'f', NULL, NULL, 0, 0, NULL, 3, NULL, 0, 0, 0, NULL, NULL, NULL",
     "1, " LK_ID(2) ", 'globex', 'g', 'k', " LK_ID(3) ", 1, 1, 'p', 4, '', 1, 1, 1, '', '', " LK_ID(4)},
    {"blocks_pkey", "blocks", "1, 1, 'acme', 'f', 0, 0", "1, 2, 'globex', 'g', 1, 1"},
    {"outcomes_pkey", "outcomes", "1, 1, 'acme', 1, 1, 1, NULL", "1, 2, 'globex', 2, 2, 2, 'r'"},
    {"settlements_pkey", "settlements", "1, 2", "1, 2"},
    {"states_pkey", "states",
     "1, 'acme', 'f', 0, 0, 0, 1, 0, 4, 0, 0, 0, 0, 0, 0, NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0",
     "1, 'globex', 'g', 1, 3, 1, 2, 1, 5, 1, 1, 1, 1, 1, 1, 1, 1, 1, NULL, NULL, '', '', NULL, 'r', 'E', 1"},
    {"waits_pkey", "waits", "1, 2, " LK_ID(1) ", 'acme'", "1, 2, " LK_ID(2) ", 'globex'"},
    {"duplicates_pkey", "duplicates", "1, 'acme', ''", "1, 'globex', 'x'"},
    {"transitions_pkey", "transitions", "'acme', 'm', 's', 'a', 'one'", "'acme', 'm', 's', 'a', 'two'"},
    {"entities_pkey", "entities", "'acme', 'm', 'e', 'one', 1", "'acme', 'm', 'e', 'two', 2"},
    {"entity_moves_pkey", "entity_moves", "'acme', 'm', 'e', 1, 'a', 's', 't', " LK_ID(1) ", 1",
     "'acme', 'm', 'e', 1, 'b', 't', 'u', " LK_ID(2) ", 2"},
    {"entity_moves_call", "entity_moves", "'acme', 'm', 'e', 1, 'a', 's', 't', " LK_ID(1) ", 1",
     "'acme', 'm', 'e', 2, 'b', 't', 'u', " LK_ID(1) ", 2"},
};

// Rows that differ from a valid one in one value.
struct Misfit {
  const char* check;
  const char* table;
  const char* right;
  std::vector<const char*> wrong;
};
const std::string kState[] = {
    "1, 'acme', 'f', 0, ", ", 1, 0, 4, 0, 0, 0, 0, 0, 0, NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0"};
const std::vector<std::string> kStates = [] {
  std::vector<std::string> rows;
  for (const char* both : {"5, 1", "9, 1", "6, 1", "-1, 1", "5, 2", "5, -1"})
    rows.push_back(kState[0] + both + kState[1]);
  return rows;
}();
const std::vector<Misfit> kMisfits{
    // A4: only the known statuses.
    {"states_status_check", "states", kStates[0].c_str(), {kStates[1].c_str(), kStates[2].c_str(), kStates[3].c_str()}},
    {"states_origin_check", "states", kStates[0].c_str(), {kStates[4].c_str(), kStates[5].c_str()}},
    {"blocks_check", "blocks", "1, 1000, 'acme', 'f', 0, 0", {"1, 1001, 'acme', 'f', 0, 0", "1, 0, 'acme', 'f', 0, 0"}},
    {"outcomes_check", "outcomes", "1, 1000, 'acme', 1, 1, 1", {"1, 1001, 'acme', 1, 1, 1", "1, 0, 'acme', 1, 1, 1"}},
    {"dead_letter_steps_kind_check",
     "dead_letter_steps",
     "1, 2, 'acme', 2, 'ada', 1, ''",
     {"1, 2, 'acme', 3, 'ada', 1, ''", "1, 2, 'acme', -1, 'ada', 1, ''"}},
    {"place_one_check", "place", "true, '1', '1'", {"false, '1', '1'"}},
    {"tenant_roles_acts_as_check",
     "tenant_roles",
     "'r', 'acme', 'org-admin'",
     {"'r', 'acme', 'admin'", "'r', 'acme', ''"}},
    {"members_actor_check", "members", "'acme', 'ada', 'viewer'", {"'acme', '', 'viewer'"}},
    {"members_role_check", "members", "'acme', 'ada', 'org-admin'", {"'acme', 'ada', 'owner'", "'acme', 'ada', ''"}},
    {"transitions_machine_check", "transitions", "'acme', 'm', '', 'a', ''", {"'acme', '', '', 'a', ''"}},
    {"transitions_action_check", "transitions", "'acme', 'm', '', 'a', ''", {"'acme', 'm', '', '', ''"}},
    {"entities_entity_check", "entities", "'acme', 'm', 'e', '', 1", {"'acme', 'm', '', '', 1"}},
};

class SqlUniqueness : public SqlTest {
 protected:
  SqlUniqueness() { engine.run("SET ROLE latchkey_engine"); }

  static std::string insert(const char* table, const std::string& values) {
    return std::string("INSERT INTO latchkey.") + table + " VALUES (" + values + ")";
  }
  // By SQLSTATE and by name: "23505 keys_pkey".
  std::string refused_by(const char* table, const std::string& values) {
    engine.run("SAVEPOINT before");
    const SqlError error = refusal(engine, insert(table, values));
    engine.run("ROLLBACK TO before");
    std::smatch named;
    const std::string said = error.what();
    std::regex_search(said, named, std::regex("constraint \"(\\w+)\""));
    return error.state + " " + named.str(1);
  }
  std::set<std::string> names(const std::string& select) {
    std::set<std::string> all;
    for (const auto& row : admin.rows(select)) all.insert(*row[0]);
    return all;
  }

  Sql engine = connect();
};

// covers: A4
TEST_F(SqlUniqueness, DuplicateRowsAreRefused) {
  std::set<std::string> tried;
  for (const Twins& twins : kTwins) {
    SCOPED_TRACE(twins.index);
    engine.run("BEGIN; " + insert(twins.table, twins.first));
    EXPECT_EQ(refused_by(twins.table, twins.second), std::string("23505 ") + twins.index);
    engine.run("ROLLBACK; BEGIN; " + insert(twins.table, twins.second) + "; ROLLBACK");  // the row is valid by itself
    tried.insert(twins.index);
  }
  EXPECT_EQ(tried, names("SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE "
                         "c.relnamespace = 'latchkey'::regnamespace AND i.indisunique AND i.indisvalid"));
}

TEST_F(SqlUniqueness, InvalidValuesAreRefused) {
  std::set<std::string> tried;
  for (const Misfit& misfit : kMisfits) {
    SCOPED_TRACE(misfit.check);
    engine.run("BEGIN");
    for (const char* wrong : misfit.wrong)
      EXPECT_EQ(refused_by(misfit.table, wrong), std::string("23514 ") + misfit.check) << wrong;
    engine.run(insert(misfit.table, misfit.right) + "; ROLLBACK");
    tried.insert(misfit.check);
  }
  EXPECT_EQ(tried,
            names("SELECT conname FROM pg_constraint WHERE connamespace = 'latchkey'::regnamespace AND contype = "
                  "'c' AND convalidated"));
}

// After an acknowledgement another entry may be open. Entries of other tenants and functions are independent.
// covers: C8
TEST_F(SqlUniqueness, OneDeadLetterIsOpenPerFunction) {
  const auto letter = [](int number, const char* of, const char* acknowledged) {
    return insert("dead_letters", std::to_string(number) + ", gen_random_uuid(), " + of +
                                      ", 'E', '', gen_random_uuid(), 1, 1, 1, " + acknowledged + ", ''");
  };
  engine.run(letter(1, "'acme', 'f'", "NULL"));
  EXPECT_EQ(refusal(engine, letter(2, "'acme', 'f'", "NULL")).state, "23505");
  engine.run(letter(3, "'acme', 'f'", "1") + "; " + letter(4, "'acme', 'f'", "1"));
  engine.run(letter(5, "'globex', 'f'", "NULL") + "; " + letter(6, "'acme', 'g'", "NULL"));
  engine.run("UPDATE latchkey.dead_letters SET acknowledged_at = 1 WHERE number = 1; " +
             letter(7, "'acme', 'f'", "NULL"));
  EXPECT_EQ(refusal(engine, "UPDATE latchkey.dead_letters SET acknowledged_at = NULL WHERE number = 1").state, "23505");
}

}  // namespace
}  // namespace latchkey
