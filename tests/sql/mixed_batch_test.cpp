// Requests of two tenants share one transaction of the engine, which sees both tenants' rows: there the store itself
// must isolate them. One tenant knows the other's ids and fences and tries them all.
#include <algorithm>
#include <future>

#include "conformance/store_test.hpp"
#include "support/postgres/pg_stores.hpp"

namespace latchkey {
namespace {

template <class T>
struct Pending {
  std::promise<Result<T>> promise = {};
  Done<T> done() {
    return [this](Result<T> result) { promise.set_value(std::move(result)); };
  }
  T answer() { return promise.get_future().get().value(); }
};

class MixedBatch : public PostgresStores, public testing::WithParamInterface<bool> {
 public:
  using Run = latchkey::Run;

 protected:
  // Makes one batch of the requests of `submit`: it runs on the thread of the store's only writer, which takes the
  // whole queue.
  void in_one_batch(std::function<void()> submit) {
    batches_before_ = count_batches();
    std::promise<void> submitted;
    store_->claim(a_claim("first", "third"), [&](const auto&) {
      submit();
      submitted.set_value();
    });
    submitted.get_future().wait();
  }
  // To be called after all replies: the first claim was one batch, and the requests another.
  void expect_one_batch() { EXPECT_EQ(count_batches(), batches_before_ + 2); }
  int count_batches() { return std::stoi(PgClient(url()).ask_one("SELECT count(*) FROM latchkey.batches")); }

  Won win(const std::string& key, const std::string& tenant) {
    return std::get<Won>(Verbs(*store_).claim(a_claim(key, tenant)));
  }
  Run find(RunId id) { return store_->find({}, id).value().value(); }

  std::unique_ptr<PostgresStore> store_ = open(url(), {.writers = 1});
  int batches_before_ = 0;
};

// In both orders within the batch.
TEST_P(MixedBatch, TenantsDoNotSeeOrChangeForeignRuns) {
  const bool hostile_first = GetParam();
  Verbs verbs(*store_);
  const Won hers = win("hers", "acme"), his = win("his", "globex"), his_other = win("other", "globex");
  const Won open = win("open", "acme");
  const Run queued = std::get<Enqueued>(verbs.enqueue(a_job("queued", "acme"))).run;
  const Run job = std::get<Enqueued>(verbs.enqueue(a_job("same-job", "acme"))).run;
  const Run lent = std::get<Enqueued>(verbs.enqueue({.tenant = "acme", .function = "g"})).run;
  const Won taken = verbs.take({.tenant = "acme", .functions = {"g"}, .limit = 1, .session = id_of(1)}).at(0);
  ASSERT_EQ(taken.run.id(), lent.id());
  verbs.enqueue(a_job("his-job", "globex"));
  const Run open_before = find(open.run.id()), lent_before = find(lent.id());

  // globex tries acme's runs: claimed, taken in a block, and queued; alone and together with its own runs.
  struct Foreign {
    Pending<std::vector<SettleReply>> settled;
    Pending<std::vector<ExtendReply>> extended;
    Pending<MoveReply> cancelled, retried, resolved;
    Pending<std::vector<EnqueueReply>> waiting;
  };
  std::vector<std::unique_ptr<Foreign>> foreign;
  const std::pair<RunId, Fence> targets[] = {
      {open.run.id(), open.fence}, {taken.run.id(), taken.fence}, {hers.run.id(), hers.fence}, {queued.id(), Fence{1}}};
  const auto attack = [&] {
    for (const auto& [id, fence] : targets) {
      Foreign& ask = *foreign.emplace_back(std::make_unique<Foreign>());
      std::vector<SettleRequest> settle;
      for (Ending ending : {Ending{Complete{"stolen", {}}}, Ending{permanent()}, Ending{Release{}}, Ending{Snooze{1h}}})
        settle.push_back({"globex", id, fence, std::move(ending)});
      store_->settle(std::move(settle), ask.settled.done());
      store_->extend({{"globex", id, fence, 1h}, {"globex", his_other.run.id(), his_other.fence, 1h}},
                     ask.extended.done());
      store_->move({"globex", id, CancelByHand{}}, ask.cancelled.done());
      store_->move({"globex", id, RetryByHand{}}, ask.retried.done());
      store_->move({"globex", id, ResolveCompleted{"stolen"}}, ask.resolved.done());
      EnqueueRequest after = a_job("after", "globex");
      after.after = {id};
      store_->enqueue({after}, ask.waiting.done());
    }
  };
  Pending<std::vector<SettleReply>> completed, spawned;
  Pending<ClaimReply> her_claim, his_claim;
  Pending<std::vector<EnqueueReply>> his_job, both_jobs;
  Pending<std::vector<Taken>> his_take, his_take_of_hers;
  const auto work = [&] {
    store_->settle({{"acme", hers.run.id(), hers.fence, Complete{"hers", {}}}}, completed.done());
    // A follow-up belongs to its run's tenant, whatever tenant it names, and cannot depend on a foreign run.
    EnqueueRequest planted{.tenant = "acme", .function = "planted"}, late{.function = "late", .after = {open.run.id()}};
    store_->settle({{"globex", his.run.id(), his.fence, Complete{"his", {planted}}},
                    {"globex", his_other.run.id(), his_other.fence, Complete{"", {late}}}},
                   spawned.done());
    store_->claim(a_claim("same", "acme"), her_claim.done());
    store_->claim(a_claim("same", "globex"), his_claim.done());
    store_->enqueue({a_job("same-job", "globex")}, his_job.done());
    store_->enqueue({a_job("fresh", "acme"), a_job("fresh", "globex")}, both_jobs.done());
    store_->take({.tenant = "globex", .functions = {"f"}, .limit = 10, .session = id_of(2)}, his_take.done());
    store_->take({.tenant = "globex", .functions = {"g"}, .limit = 10, .session = id_of(2)}, his_take_of_hers.done());
  };
  in_one_batch([&] {
    if (hostile_first) attack();
    work();
    if (!hostile_first) attack();
  });

  // The attacks get the replies for ids that do not exist.
  for (auto& ask : foreign) {
    for (const SettleReply& reply : ask->settled.answer()) EXPECT_EQ(code_of(reply), Code::NOT_FOUND);
    const auto extended = ask->extended.answer();
    EXPECT_EQ(code_of(extended[0]), Code::NOT_FOUND);
    EXPECT_TRUE(std::holds_alternative<Extended>(extended[1])) << "his own, beside it";
    for (auto* moved : {&ask->cancelled, &ask->retried, &ask->resolved})
      EXPECT_EQ(code_of(moved->answer()), Code::NOT_FOUND);
    EXPECT_EQ(code_of(ask->waiting.answer().at(0)), Code::PREDECESSOR_UNKNOWN);
  }
  // Each tenant got its own runs.
  EXPECT_EQ(std::get<Settled>(completed.answer().at(0)).run.as<Completed>()->result, "hers");
  const auto his_settled = spawned.answer();
  const Settled& settled = std::get<Settled>(his_settled.at(0));
  EXPECT_EQ(settled.run.as<Completed>()->result, "his");
  EXPECT_EQ(std::get<Enqueued>(settled.follow_ups.at(0)).run.head->tenant, "globex");
  EXPECT_EQ(code_of(his_settled.at(1)), Code::PREDECESSOR_UNKNOWN);
  const Won her_won = std::get<Won>(her_claim.answer()), his_won = std::get<Won>(his_claim.answer());
  EXPECT_NE(her_won.run.id(), his_won.run.id());
  EXPECT_EQ(her_won.run.head->tenant, "acme");
  EXPECT_EQ(his_won.run.head->tenant, "globex");
  const Enqueued his_queued = std::get<Enqueued>(his_job.answer().at(0));
  EXPECT_FALSE(his_queued.duplicate);
  EXPECT_NE(his_queued.run.id(), job.id());
  const auto fresh = both_jobs.answer();
  EXPECT_FALSE(std::get<Enqueued>(fresh[1]).duplicate);
  const auto his_taken = his_take.answer();
  EXPECT_GE(his_taken.size(), 1u) << "the job from before the batch, at least";
  for (const Taken& one : his_taken) EXPECT_EQ(one.run.head->tenant, "globex");
  EXPECT_TRUE(his_take_of_hers.answer().empty());
  expect_one_batch();
  EXPECT_EQ(PgClient(url()).ask_one(
                "SELECT count(DISTINCT tenant)::text || ' tenants, '::text || count(DISTINCT xmin::text)::text || ' "
                "transaction'::text FROM latchkey.runs WHERE key IN ('same', 'fresh')"),
            "2 tenants, 1 transaction");

  // No run of acme was changed, read or created.
  EXPECT_TRUE(same_run(find(open.run.id()), open_before));
  EXPECT_TRUE(same_run(find(lent.id()), lent_before));
  EXPECT_EQ(find(queued.id()).status(), Status::queued);
  EXPECT_EQ(find(job.id()).status(), Status::queued);
  EXPECT_EQ(PgClient(url()).ask_one("SELECT count(*) FROM latchkey.runs WHERE tenant = 'acme'"), "7");
  for (const std::string& tenant : {std::string("acme"), std::string("globex")})
    for (const Run& run : store_->list({.tenant = tenant}).value().runs) {
      EXPECT_EQ(run.head->tenant, tenant);
      EXPECT_FALSE(store_->find(tenant == "acme" ? "globex" : "acme", run.id()).value());
    }
  EXPECT_EQ(std::get<Settled>(verbs.settle({"acme", taken.run.id(), taken.fence, Complete{}})).changed, true);
  EXPECT_EQ(std::get<Settled>(verbs.settle({"acme", open.run.id(), open.fence, Complete{}})).changed, true);
}

INSTANTIATE_TEST_SUITE_P(Order, MixedBatch, testing::Bool(),
                         [](const auto& first) { return first.param ? "HostileFirst" : "HostileLast"; });

// A call for a run that a transaction has locked fails after a while. For a foreign run even that would reveal that the
// run exists.
class LockedForeignRun : public PostgresStores {};

TEST_F(LockedForeignRun, IsUnknownToOtherTenants) {
  const auto store = open(url(), {.patience = 500ms});
  Verbs verbs(*store);
  const Won hers = std::get<Won>(verbs.claim(a_claim("k", "acme"))),
            bad = std::get<Won>(verbs.claim(a_claim("b", "acme")));
  const Uuid letter = *std::get<Settled>(verbs.settle({{}, bad.run.id(), bad.fence, permanent()})).dead_letter;
  const RunId id = hers.run.id();
  PgClient locker(url());
  locker.execute("SET app.current_tenant = 'acme'; BEGIN; SELECT latchkey.heartbeat('" + to_string(id) + "', " +
                 std::to_string(static_cast<std::uint64_t>(hers.fence)) + ")");
  locker.execute("SELECT 1 FROM latchkey.dead_letters FOR UPDATE");

  const RunId guessed = make_uuid_v7(hers.run.head->created_at, uuid_counter(id), 12345);
  ASSERT_NE(guessed, id);
  for (const auto& [tenant, foreign] : {std::pair{"globex", id}, {"globex", guessed}, {"acme", guessed}}) {
    EXPECT_EQ(code_of(verbs.settle({tenant, foreign, hers.fence, Complete{"stolen", {}}})), Code::NOT_FOUND);
    EXPECT_EQ(code_of(verbs.extend({tenant, foreign, hers.fence, 1h})), Code::NOT_FOUND);
    EXPECT_EQ(code_of(verbs.move({tenant, foreign, CancelByHand{}})), Code::NOT_FOUND);
    EnqueueRequest after = a_job("after", tenant);
    after.after = {foreign};
    EXPECT_EQ(code_of(verbs.enqueue(after)), Code::PREDECESSOR_UNKNOWN);
  }
  EXPECT_FALSE(store->acknowledge("globex", letter, "eve").value());
  EXPECT_FALSE(store->act_on_dead_letter({.tenant = "globex", .dead_letter = letter, .move = RetryByHand{}}).value());
  // The run's own tenant waits for the lock.
  const auto own =
      await_result<MoveReply>([&](auto done) { store->move({"acme", id, CancelByHand{}}, std::move(done)); });
  EXPECT_EQ(own.error().code, Code::STORE_UNAVAILABLE);
  EXPECT_FALSE(store->act_on_dead_letter({.tenant = "acme", .dead_letter = letter, .move = RetryByHand{}}).has_value());
}

}  // namespace
}  // namespace latchkey
