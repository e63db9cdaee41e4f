// A move that is killed or loses its connection: a second run determines the outcome and finishes.
#include <signal.h>

#include "migrate/own_schema.hpp"
#include "transfer/transfer_fixture.hpp"

namespace latchkey {
namespace {

// The binary, blocked by the database at a chosen point while a session of the test holds an advisory lock.
class MoveKilled : public MoveTest {
 protected:
  // `trigger` creates the trigger that blocks. A deferred CONSTRAINT trigger fires at the commit.
  void hold_up(const std::string& trigger) {
    ASSERT_TRUE(migrate::prepare_own_schema(url_, random_));
    ask("CREATE SCHEMA held; CREATE FUNCTION held.wait() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN PERFORM pg_advisory_xact_lock(77); RETURN NEW; END $$; " +
        trigger);
    gate_.execute("SELECT pg_advisory_lock(77)");
  }
  // Like hold_up(), but the trigger raises an error instead of blocking.
  void refuse(const std::string& trigger) {
    ASSERT_TRUE(migrate::prepare_own_schema(url_, random_));
    ask("CREATE SCHEMA held; CREATE FUNCTION held.wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no'; END "
        "$$; " +
        trigger);
  }
  std::string moved_to() {
    Database database(store_file(), nullptr, Access::read);
    return find_transfer_status(database).value().address;
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
  // The commit of a second move, which finds the copy already there.
  static constexpr const char* kAtTheRepeatsCommit =
      "CREATE CONSTRAINT TRIGGER hold AFTER UPDATE ON latchkey.batches DEFERRABLE INITIALLY DEFERRED FOR EACH ROW "
      "EXECUTE FUNCTION held.wait()";
};

TEST_F(MoveKilled, KilledBeforeCommitChangesNothing) {
  fill(1'200);
  hold_up(kInTheMiddle);
  kill_it();
  EXPECT_TRUE(open_file()) << "the file is still in use";
  terminate_orphaned_backend();
  EXPECT_EQ(ask("SELECT count(*) FROM latchkey.runs"), "0");
  open_gate();
  const auto moved = move();
  ASSERT_TRUE(moved) << to_string(moved.error());
  EXPECT_TRUE(moved->target);
}

// covers: X2
TEST_F(MoveKilled, KilledAtCommitClosesFileUntilRerun) {
  fill();
  hold_up(kAtTheCommit);
  kill_it();
  EXPECT_EQ(open_file().error().code, Code::STORE_MOVED) << "the database may still commit the copy";
  EXPECT_THAT(open_file().error().detail, HasSubstr("begun and not finished"));
  terminate_orphaned_backend();
  EXPECT_EQ(ask("SELECT count(*) FROM latchkey.runs"), "0") << "the database did not commit";
  open_gate();
  const auto moved = move();
  ASSERT_TRUE(moved) << to_string(moved.error());
  EXPECT_TRUE(moved->target) << "the second run copies again";
  EXPECT_THAT(open_file().error().detail, HasSubstr("was moved"));
}

TEST_F(MoveKilled, CommitAfterTheKillIsFound) {
  const Filled filled = fill();
  hold_up(kAtTheCommit);
  kill_it();
  open_gate();
  wait_until_gone();
  EXPECT_NE(ask("SELECT count(*) FROM latchkey.runs"), "0") << "the database committed after the kill";
  // A server may already have begun to use the copy.
  as<Won>(Verbs(*open_copy()).claim(again("new")));
  const auto moved = move();
  ASSERT_TRUE(moved) << to_string(moved.error());
  EXPECT_FALSE(moved->target) << "the second run copies nothing";
  EXPECT_THAT(open_file().error().detail, HasSubstr("was moved"));
  EXPECT_EQ(as<Replay>(Verbs(*open_copy()).claim(again("done"))).run.id(), filled.done);
}

// The file's mark says that the copy existed. If the copy was removed since, the old file must not be copied again.
TEST_F(MoveKilled, KilledRepeatLeavesTheFinishedMark) {
  fill();
  ASSERT_TRUE(move());
  hold_up(kAtTheRepeatsCommit);
  kill_it();
  EXPECT_THAT(open_file().error().detail, HasSubstr("was moved"));
  terminate_orphaned_backend();
  open_gate();
  ASSERT_EQ(call({"migrate", "down", "--to", "0", "--yes", "--database", url_}).exit, 0);
  const auto again = move();
  ASSERT_FALSE(again) << "the file was copied a second time";
  EXPECT_EQ(again.error().code, Code::STORE_MOVED);
  EXPECT_THAT(again.error().detail, HasSubstr("has it been removed?"));
}

TEST_F(MoveKilled, RejectedRepeatLeavesMarkUnchanged) {
  fill();
  ASSERT_TRUE(move());
  for (const std::string before : {"was moved", "begun and not finished"}) {
    refuse(kAtTheRepeatsCommit);
    EXPECT_EQ(refusal(), Code::STORE_UNAVAILABLE);
    const auto opened = open_file();
    ASSERT_FALSE(opened) << "the copy exists, so the file stays closed";
    EXPECT_THAT(opened.error().detail, HasSubstr(before));
    ask("DROP SCHEMA held CASCADE");
    write_transfer_status(store_file(), {moved_to(), clock_.now(), false});
  }
  EXPECT_TRUE(move());
}

TEST_F(MoveKilled, ConnectionLostAtCommitAsksForRerun) {
  fill();
  hold_up(kAtTheCommit);
  const auto mover = start(words());
  wait_until_held_up();
  terminate_orphaned_backend();
  EXPECT_EQ(mover->finish(), 69);
  EXPECT_THAT(mover->err, HasSubstr("run the move again"));
  EXPECT_EQ(open_file().error().code, Code::STORE_MOVED)
      << "the outcome of the commit is unknown, so the file stays closed";
  open_gate();
  EXPECT_EQ(call(words()).exit, 0);
}

TEST_F(MoveKilled, RejectedCommitLeavesFileInUse) {
  fill();
  refuse(kAtTheCommit);
  EXPECT_EQ(refusal(), Code::STORE_UNAVAILABLE);
  EXPECT_EQ(ask("SELECT count(*) FROM latchkey.runs"), "0");
  EXPECT_TRUE(open_file());
}

TEST_F(MoveKilled, CtrlCReportsTheFilesState) {
  fill();
  hold_up(kInTheMiddle);
  const auto mover = start(words());
  wait_until_held_up();
  mover->signal(SIGINT);
  EXPECT_EQ(mover->finish(), 128 + SIGINT);
  EXPECT_EQ(mover->err, "latchkey: interrupted: nothing was copied; " + store_file() + " is the store as before\n");
  EXPECT_TRUE(open_file());
}

TEST_F(MoveKilled, CtrlCAtCommitReportsTheFileClosed) {
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

TEST_F(MoveKilled, ConcurrentMovesMakeOneCopy) {
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
