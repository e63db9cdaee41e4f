// The decisions in SQL against those of the model, on random runs around every boundary in time: the same next state,
// column by column, and the same reply.
#include <random>

#include "model/endings.hpp"
#include "sql/sql_runs.hpp"
#include "store/packing.hpp"
#include "support/sample_runs.hpp"

namespace latchkey {
namespace {

using namespace std::chrono_literals;

class Draw {
 public:
  explicit Draw(unsigned seed) : engine_(seed) {}
  template <class T>
  T of(std::initializer_list<T> values) {
    return *(values.begin() + std::uniform_int_distribution<std::size_t>(0, values.size() - 1)(engine_));
  }
  bool coin() { return of({false, true}); }
  Instant near(Instant at) {
    return at +
           of<Duration>({-48h, -25h, -24h, -24h - 1ms, -2min, -2min - 1ms, -1min, -1ms, 0ms, 0ms, 0ms, 1ms, 30s, 25h});
  }

  RunHead head() {
    RunHead head = a_head();
    head.guard = of({Guard::none, Guard::once, Guard::once, Guard::while_running});
    head.made_by = of({MadeBy::caller, MadeBy::caller, MadeBy::latchkey});
    head.on_doubt = of({OnDoubt::rerun, OnDoubt::hold});
    head.on_failed = of({OnFailed::wait, OnFailed::skip, OnFailed::run, OnFailed::fail});
    head.by_call = of({false, false, false, true});
    if (head.guard != Guard::once || coin()) head.fingerprint.reset();
    head.retry.retries = of<std::uint32_t>({0, 1, 3});
    head.retry.total = of<Duration>({Duration::max(), 2min, 48h});
    if (coin()) head.retry.schedule = {5s, 70s};
    head.retry.factor = of<std::uint32_t>({0, 1, 5});
    head.window = of<Duration>({0ms, 1min, 24h});
    head.claim = of({Uuid{}, id_of(41), id_of(42)});
    head.created_at = kNoon - 72h;
    return head;
  }

  State state() {
    switch (of({0, 1, 1, 2, 3, 4, 5})) {
      case 0:
        return Queued{near(kNoon), of({QueuedBy::enqueue, QueuedBy::failed_attempt, QueuedBy::release,
                                       QueuedBy::lease_end, QueuedBy::reopen, QueuedBy::doubtful_attempt})};
      case 1: {
        const bool taken = coin();
        return Running{.started_at = kNoon - 1h,
                       .lease_until = near(kNoon),
                       .claim = taken ? Uuid{} : of({Uuid{}, id_of(41)}),
                       .session = taken ? of({id_of(51), id_of(41)}) : Uuid{},
                       .lease = of<Duration>({1s, 60s}),
                       .cancel_requested = of({false, false, true})};
      }
      case 2:
        return InDoubt{near(kNoon)};
      case 3:
        return Completed{near(kNoon), of<std::string>({"", "result"})};
      case 4:
        return Failed{near(kNoon), "EXECUTION_ERROR", of({Effect::none, Effect::unknown})};
      default:
        return Cancelled{near(kNoon), "CANCELLED", of({Effect::none, Effect::unknown})};
    }
  }

  Run run() {
    Run run = a_run(state(), head());
    run.origin = of({Origin::claimed, Origin::enqueued});
    run.generation = of<std::uint32_t>({1, 2});
    run.attempt = of<std::uint32_t>({1, 2, 3, 4});
    run.failures = of<std::uint32_t>({0, 1, 2, 4});
    run.first_attempt_at = near(kNoon);
    run.waiting_for = run.as<Queued>() ? of<std::uint32_t>({0, 0, 1, 2}) : 0;
    run.last_error = of<std::string>({"", "m"});
    run.last_error_code = of<std::string>({"", "E_CODE"});
    run.opened_by = of({Uuid{}, id_of(42)});
    return run;
  }

 private:
  std::mt19937 engine_;
};

std::string ms(Instant at) { return std::to_string(to_ms(at)); }
Value maybe_uuid(const Uuid& id) { return id.is_nil() ? Value{} : Value{to_string(id)}; }

class SqlDecisions : public SqlTest {
 protected:
  // The run as rows, for one decision; the transaction is rolled back.
  template <class Decide>
  void with_run(const Run& run, Decide decide) {
    admin.run("BEGIN");
    store_run(admin, run);
    decide();
    admin.run("ROLLBACK");
  }

  // Every column but the deadline, which is written with the row.
  void expect_state(const std::optional<Run>& expected, const std::string& expression, const std::string& from) {
    const auto found =
        admin.row("SELECT " + state_list("v") + " FROM (SELECT " + expression + " AS v" + from + " OFFSET 0) q");
    if (!expected) {
      EXPECT_EQ(found[0], std::nullopt) << expression;
      return;
    }
    auto columns = state_columns(*expected);
    for (std::size_t i = 0; i + 1 < columns.size(); ++i)
      EXPECT_EQ(found[i], columns[i]) << expression << " column " << i;
  }

  const std::string rows_ = " FROM latchkey.runs r, latchkey.states s";
};

std::string quoted(const Value& value) { return value ? "'" + *value + "'" : "NULL"; }

std::string ask_of(const auto& request, Duration delay) {
  const bool has_print = request.fingerprint.has_value();
  const Value print =
      has_print ? Value{as_hex({reinterpret_cast<const char*>(request.fingerprint->data()), 32})} : Value{};
  return "ROW('default', 'f', 'k', NULL, false, " + std::to_string(static_cast<int>(request.guard)) + ", " +
         std::to_string(static_cast<int>(request.on_doubt)) + ", 0, 0, " + quoted(print) + ", " +
         std::to_string(request.retry.retries) + ", NULL, 0, " + std::to_string(request.lease.count()) + ", " +
         std::to_string(delay.count()) + ", NULL, NULL, " + quoted(maybe_uuid(request.claim)) + ")::latchkey.request";
}

constexpr int kCases = 600, kClaims = 2500;

TEST_F(SqlDecisions, TimeAlone) {
  for (int seed = 0; seed < kCases; ++seed) {
    SCOPED_TRACE(seed);
    const Run run = Draw(seed).run();
    with_run(run, [&] {
      const auto deadline = next_deadline(run);
      EXPECT_EQ(admin.one("SELECT latchkey.next_deadline(r, s)" + rows_), deadline ? Value{ms(*deadline)} : Value{});
      expect_state(decide_deadline(run, kNoon), "latchkey.decide_deadline(r, s, " + ms(kNoon) + ")", rows_);
    });
    if (HasFailure()) return;
  }
}

std::string answer_of(const ClaimReply& reply) {
  if (const auto* won = std::get_if<Won>(&reply)) return won->repeated ? "won_before" : "again";
  if (std::holds_alternative<Busy>(reply)) return "busy";
  if (std::holds_alternative<NotDue>(reply)) return "not_due";
  if (std::holds_alternative<InDoubtReply>(reply)) return "doubted";
  return std::holds_alternative<Replay>(reply) ? "replay" : "mismatch";
}

Duration wait_of(const ClaimReply& reply) {
  if (const auto* busy = std::get_if<Busy>(&reply)) return busy->retry_after;
  const auto* not_due = std::get_if<NotDue>(&reply);
  return not_due ? not_due->retry_after : 0ms;
}

TEST_F(SqlDecisions, Claims) {
  for (int seed = 0; seed < kClaims; ++seed) {
    SCOPED_TRACE(seed);
    Draw draw(seed + 100'000);
    const Run run = draw.run();
    ClaimRequest request = a_claim();
    request.fingerprint = draw.of<std::optional<Fingerprint>>({std::nullopt, kSame, kOther});
    request.on_doubt = draw.of({OnDoubt::rerun, OnDoubt::hold});
    request.retry.retries = draw.of<std::uint32_t>({0, 5});
    request.claim = draw.of({Uuid{}, id_of(41)});
    request.lease = draw.of<Duration>({1s, 60s});
    const ClaimDecision decision = decide_claim(run, request, kNewFence, kNoon);
    with_run(run, [&] {
      const std::string from =
          rows_ + ", latchkey.decide_claim(r, s, " + ask_of(request, 0ms) + ", " + ms(kNoon) + ") d";
      const auto said = admin.row("SELECT d.answer, d.code, coalesce(d.retry_after_ms, 0)" + from);
      std::optional<Run> ended;
      if (const auto* start = std::get_if<StartNew>(&decision)) {
        EXPECT_EQ(said[0], "new");
        ended = start->ended;
      } else if (const auto* again = std::get_if<StartAgain>(&decision)) {
        EXPECT_EQ(said[0], "again");
        ended = again->ended;
        expect_state(again->next,
                     "latchkey.owned(d.next, " + std::to_string(static_cast<std::uint64_t>(kNewFence)) + ", " +
                         quoted(maybe_uuid(request.claim)) + ", " + std::to_string(request.lease.count()) + ", " +
                         ms(kNoon) + ")",
                     from);
      } else {
        const auto& refuse = std::get<Refuse>(decision);
        ended = refuse.next;
        EXPECT_EQ(said[0], answer_of(refuse.reply));
        EXPECT_EQ(said[2], std::to_string(wait_of(refuse.reply).count()));
        const std::string code = on_wire(refuse.reply).code;
        EXPECT_EQ(said[1].value_or(""), code);
      }
      expect_state(ended, "d.ended", from);
    });
    if (HasFailure()) return;
  }
}

// begin_run writes the run of a new key without calling a decision function; its row is the model's, too.
// covers: C10
TEST_F(SqlDecisions, NewClaims) {
  Sql caller = service("acme");
  for (int seed = 0; seed < kCases; ++seed) {
    SCOPED_TRACE(seed);
    Draw draw(seed + 500'000);
    ClaimRequest request = a_claim("new-" + std::to_string(seed), "acme");
    request.guard = draw.of({Guard::once, Guard::once, Guard::while_running, Guard::none});
    request.on_doubt = draw.of({OnDoubt::rerun, OnDoubt::hold});
    request.retry.retries = draw.of<std::uint32_t>({0, 1, 3, 5});
    request.retry.total = draw.of<Duration>({Duration::max(), Duration::max(), 1s, 2min, 48h});
    request.lease = draw.of<Duration>({1s, 60s, 24h});
    request.window = draw.of<Duration>({0ms, 1min, 24h});
    request.claim = draw.of({Uuid{}, id_of(600 + seed)});
    request.input = draw.of<std::string>({"", "in"});
    const std::string total =
        request.retry.total == Duration::max() ? "" : ", \"total_ms\": " + std::to_string(request.retry.total.count());
    const auto won = caller.row(
        "SELECT run, fence, status, attempt, generation, effect_key, repeated FROM latchkey.begin_run('f', $1, $2, $3, "
        "$4::bigint * interval '1 ms', $5::bigint * interval '1 ms', $6, call_id => $7, retry_policy => $8)",
        {request.key, std::string(to_string(request.guard)), request.input, std::to_string(request.lease.count()),
         std::to_string(request.window.count()), std::string(to_string(request.on_doubt)), maybe_uuid(request.claim),
         "{\"retries\": " + std::to_string(request.retry.retries) + total + "}"});
    EXPECT_EQ(std::vector<Value>(won.begin() + 2, won.end()), (std::vector<Value>{"won", "1", "1", won[0], "f"}));
    const auto written = admin.row("SELECT " + state_list("s") + " FROM latchkey.states s WHERE fence = $1", {won[1]});
    const Run run = load_run(admin, *parse_uuid(*won[0]));
    const auto head = std::make_shared<RunHead>(*run.head);
    const Run expected = start_claimed(head, request, Fence{std::stoull(*won[1])}, head->created_at);
    EXPECT_EQ(written, state_columns(expected));
    EXPECT_EQ(head->guard, request.guard);
    EXPECT_EQ(head->on_doubt, request.on_doubt);
    EXPECT_TRUE(head->retry == request.retry);
    EXPECT_EQ(std::tie(head->key, head->window, head->lease, head->input, head->claim),
              std::tie(request.key, request.window, request.lease, request.input, request.claim));
    if (HasFailure()) return;
  }
}

TEST_F(SqlDecisions, Enqueues) {
  for (int seed = 0; seed < kCases; ++seed) {
    SCOPED_TRACE(seed);
    Draw draw(seed + 200'000);
    const Run run = draw.run();
    EnqueueRequest request = a_job();
    request.fingerprint = draw.of<std::optional<Fingerprint>>({std::nullopt, kSame, kOther});
    request.on_doubt = draw.of({OnDoubt::rerun, OnDoubt::hold});
    request.retry.retries = draw.of<std::uint32_t>({0, 5});
    request.claim = draw.of({Uuid{}, id_of(41), id_of(42)});
    request.delay = draw.of<Duration>({0ms, 1h});
    const auto ended = decide_deadline(run, kNoon);
    const EnqueueDecision decision = decide_enqueue(ended ? *ended : run, request, kNoon);
    with_run(run, [&] {
      const std::string from =
          rows_ + ", latchkey.decide_enqueue(r, s, " + ask_of(request, request.delay) + ", " + ms(kNoon) + ") d";
      const Value said = admin.one("SELECT d.answer" + from);
      if (std::holds_alternative<EnqueueNew>(decision)) {
        EXPECT_EQ(said, "new");
      } else if (const auto* reopen = std::get_if<Reopen>(&decision)) {
        EXPECT_EQ(said, "reopen");
        expect_state(reopen->next, "d.next", from);
      } else {
        const auto& reply = std::get<UseExisting>(decision).reply;
        const auto* existing = std::get_if<Enqueued>(&reply);
        EXPECT_EQ(said, !existing ? "mismatch" : existing->duplicate ? "duplicate" : "own");
        if (!existing) return;
      }
      expect_state(ended, "d.ended", from);
    });
    if (HasFailure()) return;
  }
}

// covers: A5
TEST_F(SqlDecisions, Settlements) {
  for (int seed = 0; seed < kCases; ++seed) {
    SCOPED_TRACE(seed);
    Draw draw(seed + 300'000);
    const Run run = draw.run();
    const Fence fence = draw.of({run.fence, run.fence, run.fence, Fence{0}, Fence{99}});
    const bool complete = draw.of({true, false, false});
    const Fail fail{.message = draw.of<std::string>({"m", "other"}),
                    .code = draw.of<std::string>({"", "E_CODE"}),
                    .retryable = draw.of({true, true, false}),
                    .outcome_unknown = draw.of({false, false, true}),
                    .retry_after = draw.of<std::optional<Duration>>({std::nullopt, std::nullopt, 0ms, 10min, 48h})};
    const Ending ending = complete ? Ending{Complete{"done", {}}} : Ending{fail};
    const auto decision = decide_settle(run, {{}, run.id(), fence, ending}, no_jitter, kNoon);
    with_run(run, [&] {
      const std::string number = std::to_string(static_cast<std::uint64_t>(fence));
      const std::string how =
          "ROW(convert_to('" + fail.message + "', 'UTF8'), nullif(convert_to('" + fail.code + "', 'UTF8'), ''), " +
          (fail.retryable ? "true, " : "false, ") + (fail.outcome_unknown ? "true, " : "false, ") +
          (fail.retry_after ? std::to_string(fail.retry_after->count()) : "NULL") + ")::latchkey.failure";
      const std::string from =
          rows_ + (complete ? ", latchkey.decide_complete(s, " + number + ", 'done', " + ms(kNoon) + ") d"
                            : ", latchkey.decide_fail(r, s, " + number + ", " + how + ", 0, " + ms(kNoon) + ") d");
      const auto said = admin.row("SELECT d.answer, d.code" + from);
      if (decision.refused) {
        EXPECT_EQ(said[0], "refused");
        EXPECT_EQ(said[1], std::string(facts(decision.refused->code).name));
      } else {
        EXPECT_EQ(said[0], decision.next ? "next" : "same");
      }
      expect_state(decision.next, "d.next", from);
    });
    if (HasFailure()) return;
  }
}

TEST_F(SqlDecisions, LongMessagesAreCutAlike) {
  RunHead holding = a_head();
  holding.on_doubt = OnDoubt::hold;
  const Run run = a_run(Running{.started_at = kNoon - 1h, .lease_until = kNoon + 1h}, holding);
  const auto expect_alike = [&](const std::string& message) {
    const Fail fail{.message = message, .outcome_unknown = true};
    const SettleRequest request{{}, run.id(), run.fence, fail};
    const auto decision = decide_settle(run, request, no_jitter, kNoon);
    const std::string decide = ", latchkey.decide_fail(r, s, " + std::to_string(static_cast<std::uint64_t>(run.fence)) +
                               ", ROW('" + as_hex(message) +
                               "'::bytea, NULL, true, true, NULL)::latchkey.failure, 0, " + ms(kNoon) + ") d";
    with_run(run, [&] { expect_state(decision.next, "d.next", rows_ + decide); });
    with_run(*decision.next, [&] { EXPECT_EQ(admin.one("SELECT d.answer" + rows_ + decide), "same"); });
  };
  for (const std::size_t size : {kErrorBytesMax - 1, kErrorBytesMax, kErrorBytesMax + 1, std::size_t{1} << 20})
    expect_alike(std::string(size, 'x'));
  for (const std::string_view character : {"é", "…", "🔑", "\x80", "\xf0\x80", "\xff", "\n"})
    for (std::size_t before = kErrorBytesMax - 70; before <= kErrorBytesMax - 62; ++before) {
      SCOPED_TRACE(before);
      std::string message(before, 'x');
      while (message.size() <= kErrorBytesMax + 8) message += character;
      expect_alike(message);
    }
  for (const std::size_t before : {kErrorBytesMax - 3, kErrorBytesMax - 2, kErrorBytesMax - 1})
    expect_alike(std::string(before, 'x') + "é");
}

TEST_F(SqlDecisions, Predecessors) {
  for (int seed = 0; seed < kCases; ++seed) {
    SCOPED_TRACE(seed);
    Draw draw(seed + 400'000);
    const Run run = draw.run();
    const Run predecessor = a_run(draw.state());
    with_run(run, [&] {
      expect_state(decide_predecessor(run, predecessor, kNoon),
                   "latchkey.decide_predecessor(r, s, " + std::to_string(static_cast<int>(predecessor.status())) +
                       ", " + ms(kNoon) + ")",
                   rows_);
    });
    if (HasFailure()) return;
  }
}

TEST_F(SqlDecisions, DelaysWithJitter) {
  std::vector<std::int64_t> buffer;
  for (const Jitter jitter : {Jitter::none, Jitter::full, Jitter::equal, Jitter::additive, Jitter::percent})
    for (const bool scheduled : {false, true})
      for (const double roll : {0.0, 0.25, 0.999}) {
        RetryPolicy retry{.first = 700ms, .factor = 3, .ceiling = 20s, .jitter = jitter, .jitter_percent = 33};
        if (scheduled) retry.schedule = {0ms, 5s, 1s};
        const std::string packed = as_hex(pack_retry(retry, buffer));
        for (std::uint32_t failures = 1; failures < 8; ++failures)
          EXPECT_EQ(admin.one("SELECT latchkey.delay_after($1, $2, $3)",
                              {packed, std::to_string(failures), std::to_string(roll)}),
                    std::to_string(retry.delay_after(failures, Dice{roll}).count()))
              << static_cast<int>(jitter) << " " << scheduled << " " << roll << " " << failures;
      }
  // A decorrelated walk draws for itself: it stays between the first delay and the ceiling.
  const RetryPolicy walk{.first = 1s, .ceiling = 20s, .jitter = Jitter::decorrelated};
  const auto spread = admin.row(
      "SELECT min(d) >= 1000, max(d) <= 20000, count(DISTINCT d) > 10 FROM (SELECT latchkey.delay_after($1, 4, "
      "random()) d FROM generate_series(1, 100)) t",
      {as_hex(pack_retry(walk, buffer))});
  for (const Value& holds : spread) EXPECT_EQ(holds, "t");
}

TEST_F(SqlDecisions, RetryPolicyBytesAreTheServers) {
  std::vector<std::int64_t> buffer;
  const auto expect_packed = [&](const std::string& json, const RetryPolicy& retry) {
    const auto bytes = pack_retry(retry, buffer);
    EXPECT_EQ(admin.one("SELECT latchkey.pack_retry($1)", {json}), bytes.empty() ? Value{} : Value{as_hex(bytes)})
        << json;
  };
  expect_packed("{}", {});
  expect_packed(R"({"retries":3,"factor":5})", {});
  expect_packed(R"({"retries":0})", {.retries = 0});
  expect_packed(R"({"total_ms":60000,"jitter":"full"})", {.total = 60s, .jitter = Jitter::full});
  expect_packed(R"({"jitter":"percent","jitter_percent":20})", {.jitter = Jitter::percent, .jitter_percent = 20});
  expect_packed(R"({"schedule_ms":[0,5000]})", {.schedule = {0ms, 5s}});
  for (const char* bad :
       {R"({"retires":1})", R"({"retries":-1})", R"({"retries":1001})", R"({"retries":1.5})", R"({"retries":"1"})",
        R"({"jitter":"some"})", R"({"schedule_ms":["x"]})", R"({"schedule_ms":5})", R"({"schedule_ms":null})",
        R"({"schedule_ms":{}})", R"({"schedule_ms":"x"})"})
    EXPECT_EQ(refusal(admin, "SELECT latchkey.pack_retry($1)", {bad}).detail, "INVALID_ARGUMENT") << bad;
}

TEST_F(SqlDecisions, IdsAndHashesAreTheServers) {
  for (const std::uint64_t counter : {1ULL, 1001ULL, 5'000'000'001ULL, (1ULL << 44) + 7, (1ULL << 54) - 1}) {
    const auto id = parse_uuid(*admin.one("SELECT latchkey.make_id($1, $2)", {ms(kNoon), std::to_string(counter)}));
    ASSERT_TRUE(id);
    EXPECT_EQ(uuid_counter(*id), counter);
    EXPECT_EQ(uuid_time(*id), kNoon);
    EXPECT_EQ(to_string(*id).substr(14, 1), "7");
    EXPECT_EQ(admin.one("SELECT latchkey.counter_of($1)", {to_string(*id)}), std::to_string(counter));
  }
  Sql caller = service("acme");
  caller.run("SELECT latchkey.begin_run('f', 'plain')");
  caller.run("SELECT latchkey.begin_run('f', E'schl\u00fcssel 2', guard => 'while-running')");
  for (const char* key : {"plain", "schl\xc3\xbcssel 2"})
    EXPECT_EQ(admin.one("SELECT count(*) FROM latchkey.keys WHERE hash = $1", {as_uuid(hash_key("acme", "f", key))}),
              "1")
        << key;
}

}  // namespace
}  // namespace latchkey
