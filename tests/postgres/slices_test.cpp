// Work of unlimited size is divided into slices, so that a caller in the same transaction does not wait for all of it.
#include <future>

#include "conformance/store_test.hpp"
#include "support/postgres/fault_proxy.hpp"
#include "support/postgres/pg_stores.hpp"

namespace latchkey {
namespace {

class PostgresSlices : public PostgresStores {
 protected:
  std::string ask(const std::string& sql) { return admin_.ask_one(sql); }

  FaultProxy proxy_{PgServer::instance().port()};
  std::unique_ptr<PostgresStore> store_ = open(proxy_.url(database()), {.writers = 1});
  PgClient admin_{url()};
};

TEST_F(PostgresSlices, OldBatchNamesArePurgedInSlices) {
  admin_.execute(
      "INSERT INTO latchkey.batches SELECT gen_random_uuid(), (extract(epoch FROM clock_timestamp()) * 1000)::bigint - "
      "i % 2 * 7200000 FROM generate_series(1, 10000) i");
  ASSERT_EQ(ask("SELECT count(*) FROM latchkey.batches"), "10000");
  const auto purge = [&] { return await<Swept>([&](auto done) { store_->purge({}, 10, std::move(done)); }); };
  int slices = 1;
  for (long left = 10000; purge().more; ++slices) {
    const long now = std::stol(ask("SELECT count(*) FROM latchkey.batches"));
    EXPECT_GE(now, left - 2000) << "a slice was too large";
    left = now;
    ASSERT_LT(slices, 10);
  }
  EXPECT_GE(slices, 3);
  EXPECT_EQ(ask("SELECT count(*) FROM latchkey.batches WHERE abs(at) < (extract(epoch FROM clock_timestamp()) * "
                "1000)::bigint - "
                "3600000"),
            "0");
  EXPECT_EQ(std::stol(ask("SELECT count(*) FROM latchkey.batches")) - slices, 5000) << "recent batch names were purged";
}

// A batch limits the size of its inputs, because they are in memory several times.
TEST_F(PostgresSlices, LargeCallsShareBatchesOfLimitedSize) {
  ASSERT_TRUE(std::holds_alternative<Won>(Verbs(*store_).claim(a_claim("first"))));
  // The writer is busy until all calls are queued.
  proxy_.slow_all(std::chrono::milliseconds{300});
  std::vector<std::future<Result<ClaimReply>>> answers;
  for (int i = 0; i < 41; ++i) {
    auto promise = std::make_shared<std::promise<Result<ClaimReply>>>();
    answers.push_back(promise->get_future());
    ClaimRequest request = a_claim(std::to_string(i));
    request.input.assign(1 << 20, 'i');
    store_->claim(std::move(request), [promise](Result<ClaimReply> reply) { promise->set_value(std::move(reply)); });
  }
  proxy_.slow_all(std::chrono::milliseconds{0});
  for (auto& answer : answers) ASSERT_TRUE(std::holds_alternative<Won>(answer.get().value()));
  EXPECT_LE(std::stol(ask("SELECT max(n) FROM (SELECT count(*) AS n FROM latchkey.runs GROUP BY xmin::text) s")), 17);
  EXPECT_GE(std::stol(ask("SELECT count(DISTINCT xmin::text) FROM latchkey.runs")), 4);
}

// The store writes the duplicates of many runs with one statement.
TEST_F(PostgresSlices, DuplicatesAreWrittenInOneStatement) {
  std::vector<EnqueueRequest> jobs(500, EnqueueRequest{.function = "f"});
  std::vector<DuplicateNote> notes;
  for (const EnqueueReply& reply : Verbs(*store_).enqueue_all(jobs)) {
    Duplicates seen;
    seen.counts.push_back({.reason = "ALREADY_QUEUED", .count = 2, .first = kNoon, .last = kNoon});
    notes.push_back({std::get<Enqueued>(reply).run.id(), seen});
  }
  const auto statements = [&] {
    std::uint64_t all = 0;
    for (const PgTraffic& one : proxy_.traffic())
      if (one.commits > 0) all += one.statements;
    return all;
  };
  const auto note = [&](std::size_t count) {
    const std::uint64_t before = statements();
    await<std::monostate>([&](auto done) {
      store_->note_duplicates({notes.begin(), notes.begin() + static_cast<std::ptrdiff_t>(count)}, std::move(done));
    });
    return statements() - before;
  };
  note(5);
  const auto few = note(5);
  EXPECT_LE(note(500), few + 1) << "at most one more statement, for the clock's mark";
  EXPECT_EQ(ask("SELECT count(*) FROM latchkey.duplicates"), "500");
  EXPECT_EQ(store_->find_duplicates(notes.front().run).value()->counts.front().count, 6u);
  EXPECT_EQ(store_->find_duplicates(notes.back().run).value()->counts.front().count, 2u);
}

}  // namespace
}  // namespace latchkey
