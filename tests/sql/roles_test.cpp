// The rights of a tenant's roles and members (C6, C7), and of a session that acts for a person.
#include <algorithm>

#include "sql/sql_hostile.hpp"

namespace latchkey {
namespace {

// covers: C6
TEST_F(SqlHostile, OrgAdminsReadDeadLettersTheEngineWrites) {
  const auto letters = [](Sql& session) {
    return std::stoi(*session.one(
        "SELECT (SELECT count(*) FROM latchkey.dead_letter_queue) + (SELECT count(*) FROM latchkey.sync_errors)"));
  };
  Sql session = service("acme");
  EXPECT_EQ(letters(session), 2) << "the service itself";
  session.run("SET app.current_actor = 'acme-admin'");
  EXPECT_EQ(letters(session), 2);
  for (const char* actor : {"acme-viewer", "acme-service", "globex-admin", "stranger"}) {
    session.run("SET app.current_actor = '" + std::string(actor) + "'");
    EXPECT_EQ(letters(session), 0) << actor;
  }
  Sql bound = connect(bound_role("acme", "service"));
  EXPECT_EQ(letters(bound), 0);
  for (const char* insert : {"dead_letters SELECT * FROM latchkey.dead_letters",
                             "dead_letter_members SELECT * FROM latchkey.dead_letter_members",
                             "dead_letter_queue (id) VALUES (gen_random_uuid())"})
    EXPECT_EQ(refusal(session, "INSERT INTO latchkey." + std::string(insert)).state, "42501") << insert;
}

// The rights of a session: the lesser of its role's and of the named person's.
enum class May { nothing, write, acknowledge };

class SqlMembers : public SqlHostile {
 protected:
  static std::string with_actor(std::string call, const std::string& actor) {
    if (const auto at = call.find("{actor}"); at != call.npos) call.replace(at, 7, actor);
    return "SELECT latchkey." + call;
  }
  // Tries every function that writes; `admin_named` is the org-admin that acknowledges.
  void expect_may(Sql& session, May may, const std::string& admin_named, const std::string& who) {
    for (const std::string& call : writing_calls()) {
      SCOPED_TRACE(who + ": " + call);
      const bool acknowledges = call.starts_with("acknowledge");
      if (may == May::acknowledge || (may == May::write && !acknowledges)) {
        session.run("BEGIN; " + with_actor(call, admin_named) + "; ROLLBACK");
        continue;
      }
      const SqlError refused = refusal(session, with_actor(call, admin_named));
      EXPECT_EQ(refused.state, "LK403");
      EXPECT_EQ(refused.detail, "FORBIDDEN");
    }
  }
};

TEST_F(SqlMembers, EveryFunctionThatWritesIsTried) {
  std::vector<std::string> tried;
  for (const std::string& call : writing_calls()) tried.push_back(call.substr(0, call.find('(')));
  std::ranges::sort(tried);
  std::vector<std::string> all;
  for (const auto& row : admin.rows("SELECT proname FROM pg_proc WHERE pronamespace = 'latchkey'::regnamespace AND "
                                    "provolatile = 'v' AND has_function_privilege('latchkey_service', oid, 'EXECUTE') "
                                    "ORDER BY proname COLLATE \"C\""))
    all.push_back(*row[0]);
  EXPECT_EQ(tried, all);
}

TEST_F(SqlMembers, ServiceHasTheNamedMembersRights) {
  admin.run("INSERT INTO latchkey.members VALUES ('acme', 'above', 'admin'), ('globex', 'elsewhere', 'service')");
  const std::string before = everything();
  Sql session = service("acme");
  expect_may(session, May::acknowledge, "acme-admin", "never set");
  const std::pair<const char*, May> people[] = {
      {"", May::acknowledge},       {"acme-admin", May::acknowledge}, {"above", May::acknowledge},
      {"acme-service", May::write}, {"acme-viewer", May::nothing},    {"globex-admin", May::nothing},
      {"elsewhere", May::nothing},  {"stranger", May::nothing},       {"ACME-ADMIN", May::nothing}};
  for (const auto& [actor, may] : people) {
    session.run("SET app.current_actor = '" + std::string(actor) + "'");
    expect_may(session, may, may == May::acknowledge && *actor ? actor : "acme-admin", actor);
  }
  EXPECT_EQ(everything(), before);
}

TEST_F(SqlMembers, BoundRoleHasTheLesserRights) {
  const std::string before = everything();
  const char* const kRoles[] = {"viewer", "service", "org-admin"};
  const char* const kActors[] = {"acme-viewer", "acme-service", "acme-admin"};
  for (int role = 0; role < 3; ++role) {
    const std::string bound = bound_role("acme", kRoles[role]);
    Sql session = connect(bound);
    expect_may(session, May{role}, "acme-admin", kRoles[role]);
    for (int person = 0; person < 3; ++person) {
      session.run("SET app.current_actor = '" + std::string(kActors[person]) + "'");
      expect_may(session, May{std::min(role, person)}, "acme-admin", std::string(kRoles[role]) + kActors[person]);
    }
    session.run("SET app.current_actor = 'globex-admin'");
    expect_may(session, May::nothing, "acme-admin", kRoles[role]);
    admin.run("DELETE FROM latchkey.tenant_roles WHERE role = '" + bound + "'");
  }
  EXPECT_EQ(everything(), before);
}

TEST_F(SqlMembers, NonMemberSeesNothing) {
  Sql session = service("acme");
  for (const char* actor : {"globex-admin", "stranger"}) {
    session.run("SET app.current_actor = '" + std::string(actor) + "'");
    EXPECT_EQ(read_all(session), 0u) << actor;
    EXPECT_EQ(session.one("SELECT latchkey.is_org_admin('acme-admin')"), "f");
  }
  for (const char* actor : {"acme-viewer", "acme-service"}) {
    session.run("SET app.current_actor = '" + std::string(actor) + "'");
    EXPECT_GT(read_all(session), 10u) << actor;
  }
}

// covers: C7
TEST_F(SqlHostile, OrgAdminAcknowledgesWithNameAndTime) {
  Sql session = service("acme");
  const std::string letter = *session.one("SELECT id FROM latchkey.dead_letter_queue");
  const auto acknowledge = [&](const std::string& actor) {
    return "SELECT acknowledged_by, acknowledged_at FROM latchkey.acknowledge_dlq_entry('" + letter + "', " + actor +
           ")";
  };
  for (const char* actor : {"'acme-viewer'", "'globex-admin'", "'stranger'", "''", "NULL"})
    EXPECT_EQ(refusal(session, acknowledge(actor)).state, "LK403") << actor;
  session.run("SET app.current_actor = 'acme-viewer'");
  EXPECT_EQ(refusal(session, acknowledge("'acme-admin'")).detail, "FORBIDDEN") << "in another person's name";
  Sql bound = connect(bound_role("acme", "service"));
  EXPECT_EQ(refusal(bound, acknowledge("'acme-admin'")).detail, "FORBIDDEN");
  EXPECT_EQ(admin.one("SELECT acknowledged_at FROM latchkey.dead_letters WHERE tenant = 'acme'"), std::nullopt);
  session.run("SET app.current_actor = 'acme-admin'");
  const auto first = session.row(acknowledge("'acme-admin'"));
  EXPECT_EQ(first[0], "acme-admin");
  admin.run("INSERT INTO latchkey.members VALUES ('acme', 'second-admin', 'org-admin')");
  session.run("SET app.current_actor = ''");
  EXPECT_EQ(session.row(acknowledge("'second-admin'")), first) << "the first acknowledgement remains";
  EXPECT_EQ(session.row("SELECT acknowledged_by_actor, acknowledged_at FROM latchkey.dead_letter_queue"), first);
  EXPECT_EQ(session.one("SELECT acknowledged_by = latchkey.name_uuid('acme-admin') FROM latchkey.dead_letter_queue"),
            "t");
  EXPECT_EQ(admin.one("SELECT acknowledged_at FROM latchkey.dead_letters WHERE tenant = 'globex'"), std::nullopt);
}

}  // namespace
}  // namespace latchkey
