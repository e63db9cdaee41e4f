// The repeat table over HTTP: status, code and Retry-After of every row.
#include <future>

#include "api/service_fixture.hpp"
#include "keying/key_hash.hpp"
#include "support/sample_runs.hpp"

namespace latchkey {
namespace {

using namespace std::chrono_literals;

class RepeatTest : public ServiceTest {
 protected:
  void enqueue(const std::string& key) {
    EnqueueRequest job;
    job.function = "f";
    job.key = key;
    job.key_hash = compute_key_hash("default", "f", key);
    job.guard = Guard::once;
    job.fingerprint = sha256("null");
    std::promise<void> done;
    service_->engine().enqueue({job}, [&](const Result<std::vector<EnqueueReply>>& replies) {
      EXPECT_TRUE(replies);
      done.set_value();
    });
    done.get_future().wait();
  }
  void take() {
    std::promise<void> done;
    service_->engine().take({.tenant = {}, .functions = {"f"}, .session = {}},
                            [&](const Result<std::vector<Taken>>& taken) {
                              EXPECT_TRUE(taken && taken->size() == 1);
                              done.set_value();
                            });
    done.get_future().wait();
  }
  void fail(const Heard& won, std::string_view more) {
    EXPECT_EQ(admin().settle(won, "fail", R"(,"error":{"message":"no")" + std::string(more) + "}").status, 200);
  }
  // Brings the key's run into the state that the row names.
  void reach(KeyState state, const std::string& key) {
    const auto claim = [&](std::string_view more = "") { return admin().claim(key, more); };
    switch (state) {
      case KeyState::absent:
        return;
      case KeyState::cancelled: {
        const Heard won = claim();
        admin().settle(won, "release");
        EXPECT_EQ(admin().post("/v1/runs/" + won.at("/run/id") + "/cancel").at("/status"), "cancelled");
        return;
      }
      case KeyState::window_over:
        admin().settle(claim(R"(,"window_ms":60000)"), "complete");
        return pass_time(61s);
      case KeyState::while_running_completed:
        EXPECT_EQ(admin().settle(claim(R"(,"guard":"while-running")"), "complete").status, 200);
        return;
      case KeyState::while_running_failed:
        return fail(claim(R"(,"guard":"while-running")"), R"(,"retryable":false)");
      case KeyState::queued_job:
        return enqueue(key);
      case KeyState::queued_claim_due:
        return fail(claim(R"(,"retry":{"first_ms":0})"), "");
      case KeyState::queued_claim_not_due:
        return fail(claim(R"(,"retry":{"first_ms":60000,"ceiling_ms":60000})"), "");
      case KeyState::running:
        EXPECT_EQ(claim().status, 201);
        return;
      case KeyState::lapsed_claim_rerun:
        EXPECT_EQ(claim().status, 201);
        return pass_time(61s);
      case KeyState::lapsed_job_rerun:
        enqueue(key);
        take();
        return pass_time(61s);
      case KeyState::lapsed_hold:
        EXPECT_EQ(claim(R"(,"on_doubt":"hold")").status, 201);
        return pass_time(61s);
      case KeyState::in_doubt:
        return fail(claim(R"(,"on_doubt":"hold")"), R"(,"outcome_unknown":true)");
      case KeyState::failed_unknown_hold:
        return fail(claim(R"(,"retry":{"retries":0})"), R"(,"outcome_unknown":true)");
      case KeyState::once_completed:
        EXPECT_EQ(admin().settle(claim(), "complete", R"(,"result":[1 ])").status, 200);
        return;
      case KeyState::once_failed:
        return fail(claim(), R"(,"retryable":false)");
    }
  }
};

// covers: A9
TEST_F(RepeatTest, EveryRow) {
  for (const RepeatRow& row : kRepeatTable) {
    const std::string key(name(row.state));
    SCOPED_TRACE(key);
    reach(row.state, key);
    std::string more = is_lock(row.state) ? R"(,"guard":"while-running")" : "";
    if (row.state == KeyState::failed_unknown_hold) more = R"(,"on_doubt":"hold")";
    const std::string target = "/v1/keys?function=f&key=" + http::encode_percent(key);
    const Heard before = admin().get(target);

    if (row.fingerprint_checked) {
      const Heard mismatch = admin().claim(key, R"(,"input":"another")");
      EXPECT_EQ(mismatch.status, 422);
      EXPECT_EQ(mismatch.at("/code"), "KEY_REUSED");
      EXPECT_EQ(mismatch.at("/existing_run_id"), before.at("/run/id"));
    }
    const Heard repeat = admin().claim(key, more);
    EXPECT_EQ(repeat.status, row.status) << repeat.body;
    EXPECT_EQ(repeat.header("retry-after").has_value(), row.retry_after);
    if (!row.code.empty()) {
      EXPECT_EQ(repeat.at("/code"), row.code);
      EXPECT_EQ(repeat.header("content-type"), "application/problem+json");
      EXPECT_EQ(repeat.at("/existing_run_id"), before.at("/run/id"));
      continue;
    }
    const bool is_same = row.claim != ClaimAnswer::new_run;
    EXPECT_EQ(repeat.at("/run/id") == before.at("/run/id"), is_same && before.status == 200);
    EXPECT_EQ(repeat.at("/run/generation"), row.claim == ClaimAnswer::new_generation ? "2" : "1");
    if (row.claim == ClaimAnswer::same_run) EXPECT_EQ(repeat.at("/run/attempt"), "2");
    if (row.claim == ClaimAnswer::replay) EXPECT_EQ(repeat.at("/result"), "[1]");
  }
}

}  // namespace
}  // namespace latchkey
