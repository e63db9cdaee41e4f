// A primary is lost around the commit of a move: the same command then finishes on the promoted standby.
#include <signal.h>

#include "migrate/own_schema.hpp"
#include "support/postgres/pg_cluster.hpp"
#include "transfer/transfer_fixture.hpp"

namespace latchkey {
namespace {

// Commits wait for the standby. A session of the test blocks the move at its commit.
class MoveFailover : public MoveTest {
 protected:
  void SetUp() override {
    primary_.stop(PgStop::fast);
    primary_.start({"synchronous_standby_names=standby", "synchronous_commit=on"});
    PgClient admin(primary_.url());
    admin.wait_until("SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'");
    ASSERT_TRUE(migrate::prepare_own_schema(both(), random_));
    fill();
  }
  std::string both() const {
    return "postgres://latchkey@127.0.0.1:" + std::to_string(primary_.port()) +
           ",127.0.0.1:" + std::to_string(standby_->port()) + "/postgres?connect_timeout=5";
  }
  Words words() const { return {"move", "--to", both()}; }
  void fail_over() {
    primary_.stop(PgStop::immediate);
    standby_->promote();
  }
  void expect_finished(const std::string& said) {
    const Answer repeat = call(words());
    EXPECT_EQ(repeat.exit, 0) << repeat.err;
    EXPECT_THAT(repeat.out, HasSubstr(said));
    EXPECT_THAT(open_file().error().detail, HasSubstr("was moved"));
    PgClient after(standby_->url());
    EXPECT_NE(after.ask_one("SELECT count(*) FROM latchkey.runs"), "0");
    EXPECT_EQ(after.ask_one("SELECT count(*) FROM latchkey.batches WHERE at > 9007199254740000"), "1");
  }

  PgCluster primary_;
  std::unique_ptr<PgCluster> standby_ = PgCluster::make_standby(primary_);
};

TEST_F(MoveFailover, PrimaryLostAtCommitIsCopiedAgain) {
  PgClient gate(primary_.url());
  gate.execute(
      "CREATE SCHEMA held; CREATE FUNCTION held.wait() RETURNS trigger LANGUAGE plpgsql AS "
      "$$ BEGIN PERFORM pg_advisory_xact_lock(77); RETURN NEW; END $$; CREATE CONSTRAINT TRIGGER hold AFTER INSERT ON "
      "latchkey.batches DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION held.wait(); "
      "SELECT pg_advisory_lock(77)");
  const auto mover = start(words());
  gate.wait_until("SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND objid = 77 AND NOT granted)");
  fail_over();
  EXPECT_EQ(mover->finish(), 69);
  EXPECT_THAT(mover->err, HasSubstr("run the move again"));
  EXPECT_EQ(open_file().error().code, Code::STORE_MOVED)
      << "the outcome of the commit is unknown, so the file stays closed";
  expect_finished("verified: ");
}

TEST_F(MoveFailover, CopyOnPromotedStandbyIsFound) {
  ASSERT_EQ(call(words()).exit, 0);
  fail_over();
  expect_finished("has this copy already");
}

// A commit that is cancelled while it waits for a lost standby is reported as committed, with a warning.
// The warning must reach the move even if the role's client_min_messages shows errors only.
TEST_F(MoveFailover, CommitCancelledInSyncWaitIsUnknown) {
  PgClient watch(primary_.url());
  for (const char* setting : {"client_min_messages = error", "synchronous_commit = local"}) {
    watch.execute(std::string("SET synchronous_commit = local; ALTER ROLE latchkey SET ") + setting);
  }
  standby_->stop(PgStop::immediate);
  const auto mover = start(words());
  const std::string waiting =
      "FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query = 'COMMIT' AND backend_type = 'client backend'";
  watch.wait_until("SELECT EXISTS (SELECT " + waiting + ")");
  watch.execute("SELECT pg_cancel_backend(pid) " + waiting);
  EXPECT_EQ(mover->finish(), 69);
  EXPECT_THAT(mover->err, HasSubstr("or on its standby, is not known; run the move again"));
  EXPECT_THAT(open_file().error().detail, HasSubstr("begun and not finished"));
  standby_->start();
  fail_over();
  const Answer repeat = call(words());
  EXPECT_EQ(repeat.exit, 0) << repeat.err;
  EXPECT_THAT(open_file().error().detail, HasSubstr("was moved"));
}

}  // namespace
}  // namespace latchkey
