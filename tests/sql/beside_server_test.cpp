// Users' own transactions and a live store on the same keys: every key has one effect, that of its winner.
#include <condition_variable>
#include <map>
#include <set>
#include <thread>

#include "conformance/store_test.hpp"
#include "support/postgres/pg_stores.hpp"

namespace latchkey {
namespace {

// The keys whose claims were refused. An owner waits here until another caller was refused its key, so that the
// callers are known to overlap.
class RefusedKeys {
 public:
  void add(const std::string& key) {
    const std::lock_guard lock(mutex_);
    keys_.insert(key);
    changed_.notify_all();
  }
  void wait_for(const std::string& key) {
    std::unique_lock lock(mutex_);
    keys_.erase(key);
    changed_.wait(lock, [&] { return keys_.contains(key); });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<std::string> keys_;
};

class SqlBesideServer : public PostgresStores {
 protected:
  static constexpr int kKeys = 400, kSessions = 3, kStores = 2;

  PgClient user() {
    PgClient session(url());
    session.execute("SET app.current_tenant = 'default'");
    return session;
  }
  static std::vector<std::string> shuffled(Random& random) {
    std::vector<std::string> keys;
    for (int i = 0; i < kKeys; ++i) keys.push_back("k" + std::to_string(i));
    for (std::size_t i = keys.size(); i > 1; --i) std::swap(keys[i - 1], keys[random.below(i)]);
    return keys;
  }

  std::unique_ptr<PostgresStore> one_ = open(url()), two_ = open(url());
  PgClient admin_{url()};
};

// A session's effect is a row in the ledger, in the transaction that completes the run; a store's is its accepted
// settlement. Some callers roll back and some fail: the key is then free again. The first session and the first store
// each own one key until another caller was refused it; the other callers never wait.
TEST_F(SqlBesideServer, EveryKeyHasOneEffect) {
  admin_.execute("CREATE TABLE public.ledger (key text, who int)");
  std::mutex mutex;
  std::map<std::string, int> by_store;
  std::atomic<int> by_session{0}, undone{0};
  RefusedKeys refused;
  {
    std::vector<std::jthread> threads;
    for (int number = 0; number < kSessions; ++number)
      threads.emplace_back([&, number] {
        SeededRandom random(static_cast<std::uint64_t>(100 + number));
        PgClient session = user();
        bool wait_for_refusal = number == 0;
        auto open_keys = shuffled(random);
        while (!open_keys.empty()) {
          std::vector<std::string> again;
          for (const std::string& key : open_keys) {
            const bool two_transactions = random.one_in(2) || wait_for_refusal;
            const std::string begun = session.ask_one(
                "BEGIN; SELECT status || ' ' || coalesce(run::text, '') || ' ' || coalesce(fence, 0) "
                "FROM latchkey.begin_run('f', '" +
                key + "', retry_policy => '{\"retries\": 1000, \"first_ms\": 0}')");
            const std::string status = begun.substr(0, begun.find(' '));
            if (status == "won") {
              const std::string run = begun.substr(4, 36), fence = begun.substr(41);
              if (two_transactions) session.execute("COMMIT; BEGIN");
              if (std::exchange(wait_for_refusal, false)) refused.wait_for(key);
              session.execute("INSERT INTO public.ledger VALUES ('" + key + "', " + std::to_string(number) + ")");
              const bool rolls_back = random.one_in(4);
              if (rolls_back && two_transactions) {
                session.execute("ROLLBACK; SELECT latchkey.fail_run('" + run + "', " + fence + ", 'no')");
              } else {
                session.execute("SELECT latchkey.complete_run('" + run + "', " + fence + ", 'sql')");
                session.execute(rolls_back ? "ROLLBACK" : "COMMIT");
              }
              ++(rolls_back ? undone : by_session);
              if (rolls_back) again.push_back(key);
            } else {
              session.execute("COMMIT");
              if (status == "replayed") continue;
              EXPECT_TRUE(status == "busy" || status == "not_due") << begun;
              refused.add(key);
              again.push_back(key);
            }
          }
          open_keys = std::move(again);
        }
      });
    for (int number = 0; number < kStores; ++number)
      threads.emplace_back([&, number] {
        SeededRandom random(static_cast<std::uint64_t>(200 + number));
        Verbs store(number ? *two_ : *one_);
        bool wait_for_refusal = number == 0;
        auto open_keys = shuffled(random);
        while (!open_keys.empty()) {
          std::vector<std::string> again;
          for (const std::string& key : open_keys) {
            ClaimRequest request = a_claim(key);
            request.fingerprint.reset();
            request.retry = {.retries = 1000, .first = 0ms, .factor = 1};
            const ClaimReply reply = store.claim(request);
            if (std::holds_alternative<Replay>(reply)) continue;
            const auto* won = std::get_if<Won>(&reply);
            const bool fails = random.one_in(4);
            if (!won || fails) again.push_back(key);
            if (!won) {
              refused.add(key);
              continue;
            }
            if (std::exchange(wait_for_refusal, false)) refused.wait_for(key);
            const Ending ending = fails ? Ending{Fail{.message = "no"}} : Complete{"store", {}};
            const auto settled = std::get<Settled>(store.settle({{}, won->run.id(), won->fence, ending}));
            EXPECT_TRUE(settled.changed);
            if (fails) ++undone;
            const std::lock_guard lock(mutex);
            if (!fails) ++by_store[key];
          }
          open_keys = std::move(again);
        }
      });
  }
  for (int i = 0; i < kKeys; ++i) {
    const std::string key = "k" + std::to_string(i);
    const int by_sql = std::stoi(admin_.ask_one("SELECT count(*) FROM public.ledger WHERE key = '" + key + "'"));
    EXPECT_EQ(by_sql + by_store[key], 1) << key;
    ClaimRequest request = a_claim(key);
    request.fingerprint.reset();
    EXPECT_EQ(std::get<Replay>(Verbs(*one_).claim(request)).run.as<Completed>()->result, by_sql ? "sql" : "store");
  }
  EXPECT_EQ(admin_.ask_one("SELECT count(*) FROM latchkey.job_runs"), std::to_string(kKeys));
  EXPECT_GT(by_session, 10);
  EXPECT_GT(by_store.size(), 10u);
  EXPECT_GT(undone, 10);
  admin_.execute("DROP TABLE public.ledger");
}

TEST_F(SqlBesideServer, EveryJobIsEnqueuedAndDoneOnce) {
  std::mutex mutex;
  std::map<std::string, int> made, done;
  std::atomic<int> enqueuing{kSessions + kStores};
  {
    std::vector<std::jthread> threads;
    for (int number = 0; number < kSessions + kStores; ++number)
      threads.emplace_back([&, number] {
        SeededRandom random(static_cast<std::uint64_t>(300 + number));
        PgClient session = user();
        for (const std::string& key : shuffled(random)) {
          bool is_new = false;
          if (number < kSessions) {
            session.execute("BEGIN");
            is_new = session.ask_one("SELECT duplicate FROM latchkey.enqueue('f', '" + key + "')") == "f";
            const bool rolls_back = random.one_in(5);
            session.execute(rolls_back ? "ROLLBACK" : "COMMIT");
            is_new = is_new && !rolls_back;
          } else {
            EnqueueRequest job = a_job(key);
            job.fingerprint.reset();
            is_new = !std::get<Enqueued>(Verbs(number % 2 ? *one_ : *two_).enqueue(job)).duplicate;
          }
          const std::lock_guard lock(mutex);
          made[key] += is_new;
        }
        --enqueuing;
      });
    for (PostgresStore* store : {one_.get(), two_.get()})
      threads.emplace_back([&, store] {
        while (true) {
          const bool was_all = enqueuing == 0;
          const auto taken = Verbs(*store).take({.functions = {"f"}, .limit = 7, .session = id_of(5)});
          if (taken.empty() && was_all) break;
          for (const Taken& one : taken) {
            const auto reply = Verbs(*store).settle({{}, one.run.id(), one.fence, Complete{"r", {}}});
            EXPECT_TRUE(std::get<Settled>(reply).changed);
            const std::lock_guard lock(mutex);
            ++done[one.run.head->key];
          }
        }
      });
  }
  EXPECT_EQ(made.size(), static_cast<std::size_t>(kKeys));
  for (const auto& [key, count] : made) EXPECT_EQ(count, 1) << key;
  EXPECT_EQ(done, made);
  EXPECT_EQ(admin_.ask_one("SELECT count(*) FROM latchkey.job_runs"), std::to_string(kKeys));
}

}  // namespace
}  // namespace latchkey
