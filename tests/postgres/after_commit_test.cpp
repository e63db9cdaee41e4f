// A statement that fails after a COMMIT must not change the replies of that commit: the store must neither reply that
// nothing was changed, nor execute the batch again.
#include "conformance/await.hpp"
#include "support/postgres/pg_stores.hpp"
#include "support/sample_runs.hpp"

namespace latchkey {
namespace {

class AfterCommit : public PostgresStores {
 protected:
  // Enqueues one job without a key while another session locks the table `states`, which such a job does not use.
  void enqueue_beside_table_lock(const std::string& setting) {
    const auto store = open(url() + "?options=-c%20" + setting);
    PgClient admin(url());
    admin.execute("BEGIN; LOCK TABLE latchkey.states IN ACCESS EXCLUSIVE MODE");
    EnqueueRequest job;
    job.function = "f";
    const auto replies =
        await_result<std::vector<EnqueueReply>>([&](auto done) { store->enqueue({job}, std::move(done)); });
    EXPECT_TRUE(replies) << to_string(replies.error());
    EXPECT_EQ(admin.ask_one("SELECT count(*) FROM latchkey.runs"), "1");
    admin.execute("COMMIT");
  }
};

TEST_F(AfterCommit, StatementTimeoutDoesNotChangeReply) { enqueue_beside_table_lock("statement_timeout%3D500"); }

TEST_F(AfterCommit, LockTimeoutDoesNotRepeatEnqueue) { enqueue_beside_table_lock("lock_timeout%3D100"); }

}  // namespace
}  // namespace latchkey
