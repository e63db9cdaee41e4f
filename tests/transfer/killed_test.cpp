// A move that is killed, or loses its connection: run again, it finds what became of it.
#include <signal.h>

#include "migrate/own_schema.hpp"
#include "transfer/transfer_fixture.hpp"

namespace latchkey {
namespace {

// The binary, held up by the database at a chosen point while a session of the test's holds an advisory lock.
class MoveKilled : public MoveTest {
 protected:
  // `when`: BEFORE or AFTER with its table; a CONSTRAINT trigger that is deferred fires at the commit.
  void hold_up(const std::string& trigger) {
    ASSERT_TRUE(migrate::prepare_own_schema(url_, random_));
    ask("CREATE SCHEMA held; CREATE FUNCTION held.wait() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN PERFORM pg_advisory_xact_lock(77); RETURN NEW; END $$; " +
        trigger);
    gate_.execute("SELECT pg_advisory_lock(77)");
  }
  // As it would be held up.
  void refuse(const std::string& trigger) {
    ASSERT_TRUE(migrate::prepare_own_schema(url_, random_));
    ask("CREATE SCHEMA held; CREATE FUNCTION held.wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no'; END "
        "$$; " +
        trigger);
  }
  std::string moved_to() {
    Database database(store_file(), nullptr, Access::read);
    return find_moved_mark(database).value().place;
  }
  void wait_until_held_up() {
    gate_.wait_until("SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND objid = 77 AND NOT granted)");
  }
  void open_gate() { gate_.execute("SELECT pg_advisory_unlock(77)"); }
  void wait_until_gone() {
    gate_.wait_until(
        "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND pid <> "
        "pg_backend_pid() AND application_name LIKE 'latchkey%')");
  }
  void terminate_orphaned_backend() {
    gate_.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND objid = 77 AND NOT granted");
    wait_until_gone();
  }
  void kill_it() {
    const auto mover = start(words());
    wait_until_held_up();
    mover->signal(SIGKILL);
    EXPECT_EQ(mover->finish(), 128 + SIGKILL);
  }

  PgClient gate_{url_};
  static constexpr const char* kInTheMiddle =
      "CREATE TRIGGER hold BEFORE INSERT ON latchkey.dead_letters FOR EACH ROW EXECUTE FUNCTION held.wait()";
  static constexpr const char* kAtTheCommit =
      "CREATE CONSTRAINT TRIGGER hold AFTER INSERT ON latchkey.batches DEFERRABLE INITIALLY DEFERRED FOR EACH ROW "
      "EXECUTE FUNCTION held.wait()";
  // Of one that finds the copy there.
  static constexpr const char* kAtTheRepeatsCommit =
      "CREATE CONSTRAINT TRIGGER hold AFTER UPDATE ON latchkey.batches DEFERRABLE INITIALLY DEFERRED FOR EACH ROW "
      "EXECUTE FUNCTION held.wait()";
};

TEST_F(MoveKilled, InTheMiddleNothingHasHappened) {
  fill(1'200);
  hold_up(kInTheMiddle);
  kill_it();
  EXPECT_TRUE(open_file()) << "the file goes on being used";
  terminate_orphaned_backend();
  EXPECT_EQ(ask("SELECT count(*) FROM latchkey.runs"), "0");
  open_gate();
  const auto moved = move();
  ASSERT_TRUE(moved) << to_string(moved.error());
  EXPECT_TRUE(moved->target);
}

TEST_F(MoveKilled, AtTheCommitTheFileStaysShutUntilItIsRunAgain) {
  fill();
  hold_up(kAtTheCommit);
  kill_it();
  EXPECT_EQ(open_file().error().code, Code::STORE_MOVED) << "the copy may yet be committed";
  EXPECT_THAT(open_file().error().detail, HasSubstr("begun and not finished"));
  terminate_orphaned_backend();
  EXPECT_EQ(ask("SELECT count(*) FROM latchkey.runs"), "0") << "it was not";
  open_gate();
  const auto moved = move();
  ASSERT_TRUE(moved) << to_string(moved.error());
  EXPECT_TRUE(moved->target) << "so it is copied again";
  EXPECT_THAT(open_file().error().detail, HasSubstr("was moved"));
}

TEST_F(MoveKilled, ACommitBehindItsBackIsFound) {
  const Filled filled = fill();
  hold_up(kAtTheCommit);
  kill_it();
  open_gate();
  wait_until_gone();
  EXPECT_NE(ask("SELECT count(*) FROM latchkey.runs"), "0") << "the database went on without it";
  // A server may have begun to use the copy by now.
  as<Won>(Verbs(*open_copy()).claim(again("new")));
  const auto moved = move();
  ASSERT_TRUE(moved) << to_string(moved.error());
  EXPECT_FALSE(moved->target) << "nothing is copied twice";
  EXPECT_THAT(open_file().error().detail, HasSubstr("was moved"));
  EXPECT_EQ(as<Replay>(Verbs(*open_copy()).claim(again("done"))).run.id(), filled.done);
}

// The file knows that the copy was there: if it has been removed since, that is not to be made good by an old file.
TEST_F(MoveKilled, ARepeatOfAFinishedMoveLeavesItsMark) {
  fill();
  ASSERT_TRUE(move());
  hold_up(kAtTheRepeatsCommit);
  kill_it();
  EXPECT_THAT(open_file().error().detail, HasSubstr("was moved"));
  terminate_orphaned_backend();
  open_gate();
  ASSERT_EQ(call({"migrate", "down", "--to", "0", "--yes", "--database", url_}).exit, 0);
  const auto again = move();
  ASSERT_FALSE(again) << "copied a second time";
  EXPECT_EQ(again.error().code, Code::STORE_MOVED);
  EXPECT_THAT(again.error().detail, HasSubstr("has it been removed?"));
}

TEST_F(MoveKilled, ARepeatWhoseCommitIsRefusedLeavesTheMarkAsItWas) {
  fill();
  ASSERT_TRUE(move());
  for (const std::string before : {"was moved", "begun and not finished"}) {
    refuse(kAtTheRepeatsCommit);
    EXPECT_EQ(refusal(), Code::STORE_UNAVAILABLE);
    const auto opened = open_file();
    ASSERT_FALSE(opened) << "the copy is there";
    EXPECT_THAT(opened.error().detail, HasSubstr(before));
    ask("DROP SCHEMA held CASCADE");
    write_moved_mark(store_file(), {moved_to(), clock_.now(), false});
  }
  EXPECT_TRUE(move());
}

TEST_F(MoveKilled, AConnectionThatGoesAtTheCommitIsToldAndRunAgain) {
  fill();
  hold_up(kAtTheCommit);
  const auto mover = start(words());
  wait_until_held_up();
  terminate_orphaned_backend();
  EXPECT_EQ(mover->finish(), 69);
  EXPECT_THAT(mover->err, HasSubstr("run the move again"));
  EXPECT_EQ(open_file().error().code, Code::STORE_MOVED) << "whether it was committed cannot be known here";
  open_gate();
  EXPECT_EQ(call(words()).exit, 0);
}

TEST_F(MoveKilled, ACommitThatIsRefusedLeavesTheFileInUse) {
  fill();
  refuse(kAtTheCommit);
  EXPECT_EQ(refusal(), Code::STORE_UNAVAILABLE);
  EXPECT_EQ(ask("SELECT count(*) FROM latchkey.runs"), "0");
  EXPECT_TRUE(open_file());
}

TEST_F(MoveKilled, CtrlCSaysWhatItLeaves) {
  fill();
  hold_up(kInTheMiddle);
  const auto mover = start(words());
  wait_until_held_up();
  mover->signal(SIGINT);
  EXPECT_EQ(mover->finish(), 128 + SIGINT);
  EXPECT_EQ(mover->err, "latchkey: interrupted: nothing was copied; " + store_file() + " is the store as before\n");
  EXPECT_TRUE(open_file());
}

TEST_F(MoveKilled, CtrlCAtTheCommitSaysThatTheFileStaysClosed) {
  fill();
  hold_up(kAtTheCommit);
  const auto mover = start(words());
  wait_until_held_up();
  mover->signal(SIGINT);
  EXPECT_EQ(mover->finish(), 128 + SIGINT);
  EXPECT_THAT(mover->err, HasSubstr(store_file() + " stays closed until the move is run again"));
  EXPECT_EQ(open_file().error().code, Code::STORE_MOVED);
  terminate_orphaned_backend();
  open_gate();
  EXPECT_EQ(call(words()).exit, 0);
}

TEST_F(MoveKilled, TwoAtOnceMakeOneCopy) {
  fill();
  const std::string other = file("other.db");
  {
    const auto store = SqliteStore::open({.file = other}, clock_, random_);
    as<Won>(Verbs(**store).claim(again("of another store")));
  }
  hold_up(kInTheMiddle);
  const auto first = start(words());
  wait_until_held_up();
  const auto second = start({"move", "--from", "sqlite:" + other, "--to", url_});
  gate_.wait_until("SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'relation' AND NOT granted)");
  open_gate();
  EXPECT_EQ(first->finish(), 0) << first->err;
  EXPECT_EQ(second->finish(), 1) << second->out;
  EXPECT_THAT(second->err, HasSubstr("STORE_NOT_EMPTY"));
}

}  // namespace
}  // namespace latchkey
