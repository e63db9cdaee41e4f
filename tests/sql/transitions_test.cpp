// Transitions by a declared table (B7, B10), with the seed's offers as the example.
#include "sql/sql_fixture.hpp"

namespace latchkey {
namespace {

class SqlTransitions : public SqlTest {
 protected:
  SqlTransitions() {
    for (const char* move :
         {"'offered', 'accept', 'accepted'", "'offered', 'pass', 'passed'", "'offered', 'not_now', 'not_now'",
          "'accepted', 'mutual_accept', 'matched'", "'matched', 'unmatch', 'closed'"})
      caller.run("SELECT latchkey.declare_transition('offer', " + std::string(move) + ")");
  }
  std::vector<Value> move(const std::string& arguments) {
    return caller.row("SELECT state, changed, current_state FROM latchkey.transition('offer', " + arguments + ")");
  }
  Sql caller = service("acme");
};

// covers: B7
TEST_F(SqlTransitions, DeclaredTransitionsRepeatTheirReply) {
  EXPECT_EQ(move("'o1', 'accept', start => 'offered'"), (std::vector<Value>{"accepted", "t", "accepted"}));
  EXPECT_EQ(move("'o1', 'accept', start => 'offered'"), (std::vector<Value>{"accepted", "f", "accepted"}));
  EXPECT_EQ(refusal(caller, "SELECT latchkey.transition('offer', 'o1', 'pass')").state, "LK411");
  EXPECT_EQ(move("'o1', 'mutual_accept'"), (std::vector<Value>{"matched", "t", "matched"}));
  EXPECT_EQ(move("'o1', 'accept'"), (std::vector<Value>{"accepted", "f", "matched"}))
      << "a late repeat: the same answer";
  EXPECT_EQ(refusal(caller, "SELECT latchkey.transition('offer', 'o1', 'not_now')").detail, "MOVE_REFUSED");
  EXPECT_EQ(move("'o1', 'unmatch'"), (std::vector<Value>{"closed", "t", "closed"}));
  EXPECT_EQ(caller.one("SELECT moves FROM latchkey.entities"), "3");
}

TEST_F(SqlTransitions, UnknownThingsAreNotFound) {
  EXPECT_EQ(refusal(caller, "SELECT latchkey.transition('offer', 'unused', 'accept')").detail, "NOT_FOUND");
  EXPECT_EQ(refusal(caller, "SELECT latchkey.transition('nothing', 'o1', 'accept', start => 'offered')").detail,
            "NOT_FOUND");
  EXPECT_EQ(caller.one("SELECT count(*) FROM latchkey.entities"), "0");
}

// covers: B10
TEST_F(SqlTransitions, ConditionalUpdates) {
  EXPECT_EQ(
      refusal(caller, "SELECT latchkey.transition('offer', 'o1', 'accept', start => 'offered', expected => 'accepted')")
          .detail,
      "MOVE_REFUSED");
  EXPECT_EQ(move("'o1', 'accept', start => 'offered', expected => 'offered'"),
            (std::vector<Value>{"accepted", "t", "accepted"}));
  EXPECT_EQ(move("'o1', 'accept', expected => 'offered'"), (std::vector<Value>{"accepted", "f", "accepted"}));
}

TEST_F(SqlTransitions, CallIdDistinguishesARepeat) {
  caller.run(
      "SELECT latchkey.declare_transition('light', 'off', 'press', 'on'); SELECT latchkey.declare_transition('light', "
      "'on', 'press', 'off')");
  const auto press = [&](const std::string& call) {
    return caller.row(
        "SELECT state, changed FROM latchkey.transition('light', 'l', 'press', start => 'off', call_id => '" + call +
        "')");
  };
  const std::string one = "11111111-1111-4111-8111-111111111111", two = "22222222-2222-4222-8222-222222222222";
  EXPECT_EQ(press(one), (std::vector<Value>{"on", "t"}));
  EXPECT_EQ(press(one), (std::vector<Value>{"on", "f"}));
  EXPECT_EQ(press(two), (std::vector<Value>{"off", "t"}));
  EXPECT_EQ(press(one), (std::vector<Value>{"on", "f"}));
}

// In a table with a cycle, only the call_id distinguishes a late repeat from a second transition.
// covers: B7
TEST_F(SqlTransitions, LateRepeatInACycleNeedsItsCallId) {
  caller.run(
      "SELECT latchkey.declare_transition('door', 'open', 'close', 'closed'); SELECT "
      "latchkey.declare_transition('door', 'closed', 'reopen', 'open')");
  const auto act = [&](const std::string& arguments) {
    return caller.row("SELECT state, changed, current_state FROM latchkey.transition('door', " + arguments + ")");
  };
  const auto call = [](int number) {
    return ", call_id => '00000000-0000-4000-8000-00000000000" + std::to_string(number) + "'";
  };
  EXPECT_EQ(act("'named', 'close', start => 'open'" + call(1)), (std::vector<Value>{"closed", "t", "closed"}));
  EXPECT_EQ(act("'named', 'reopen'" + call(2)), (std::vector<Value>{"open", "t", "open"}));
  EXPECT_EQ(act("'named', 'close', start => 'open'" + call(1)), (std::vector<Value>{"closed", "f", "open"}));
  EXPECT_EQ(act("'named', 'reopen'" + call(2)), (std::vector<Value>{"open", "f", "open"}));
  EXPECT_EQ(act("'named', 'close'" + call(3)), (std::vector<Value>{"closed", "t", "closed"}));

  EXPECT_EQ(act("'nameless', 'close', start => 'open'"), (std::vector<Value>{"closed", "t", "closed"}));
  EXPECT_EQ(act("'nameless', 'close'"), (std::vector<Value>{"closed", "f", "closed"})) << "not late: nothing moved";
  EXPECT_EQ(act("'nameless', 'reopen'"), (std::vector<Value>{"open", "t", "open"}));
  EXPECT_EQ(act("'nameless', 'close', start => 'open'"), (std::vector<Value>{"closed", "t", "closed"}))
      << "a late repeat or a second transition: they look the same";
}

// covers: B7
TEST_F(SqlTransitions, TwoCallersAtOnceAreOneTransition) {
  Sql other = service("acme");
  caller.run("BEGIN; SELECT latchkey.transition('offer', 'o1', 'accept', start => 'offered')");
  other.send("SELECT state, changed FROM latchkey.transition('offer', 'o1', 'accept', start => 'offered')");
  wait_until_blocked(other.pid());
  caller.run("COMMIT");
  EXPECT_EQ(other.fetch(), (Rows{{"accepted", "f"}}));
}

TEST_F(SqlTransitions, SharedMachinesCannotBeChanged) {
  admin.run("INSERT INTO latchkey.transitions VALUES ('*', 'match', 'open', 'close', 'closed')");
  EXPECT_EQ(refusal(caller, "SELECT latchkey.declare_transition('match', 'closed', 'open', 'open')").detail,
            "FORBIDDEN");
  EXPECT_EQ(caller.one("SELECT state FROM latchkey.transition('match', 'm', 'close', start => 'open')"), "closed");
  Sql other = service("globex");
  EXPECT_EQ(other.one("SELECT state FROM latchkey.transition('match', 'm', 'close', start => 'open')"), "closed")
      << "an entity of its own";
  EXPECT_EQ(refusal(other, "SELECT latchkey.transition('offer', 'o1', 'accept', start => 'offered')").detail,
            "NOT_FOUND");
  EXPECT_EQ(refusal(caller, "SELECT latchkey.declare_transition('offer', 'offered', 'accept', 'elsewhere')").detail,
            "MOVE_REFUSED");
}

}  // namespace
}  // namespace latchkey
