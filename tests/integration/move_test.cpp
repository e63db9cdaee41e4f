// An embedded store moved into PostgreSQL: everything arrives, work goes on, and whatever goes wrong leaves one store.
#include <signal.h>

#include "integration/move_fixture.hpp"
#include "integration/service_fixture.hpp"
#include "migrations/own_schema.hpp"
#include "support/pg_bouncer.hpp"

namespace latchkey {
namespace {

ClaimRequest again(const std::string& key, Guard guard = Guard::once) {
  ClaimRequest request = a_claim(key);
  request.guard = guard;
  return request;
}

TEST_F(MoveTest, EverythingArrivesAsItWas) {
  fill(3'000);
  Summary before = moving::summarise(**open_file()).value();
  const auto moved = move();
  ASSERT_TRUE(moved) << to_string(moved.error());
  EXPECT_EQ(moved->source, *moved->target);
  EXPECT_TRUE(moved->is_marked);
  const auto& counts = moved->source.counts;
  EXPECT_GT(counts.all_runs(), 3'000u);
  for (const std::uint64_t runs : counts.runs) EXPECT_GT(runs, 0u) << "every status is there";
  EXPECT_EQ(counts.waits, 1u);
  EXPECT_EQ(counts.duplicates, 1u);
  EXPECT_EQ(counts.letters, 2u);
  EXPECT_EQ(counts.members, 5u) << "two generations of one, and three more";
  EXPECT_EQ(counts.steps, 1u);
  EXPECT_EQ(counts.tokens, 2u);
  EXPECT_EQ(ask("SELECT count(*) FROM latchkey.tenants"), "2");

  // As a server reads it: the same summary by the store's interface.
  const auto copy = open_copy();
  const Summary after = moving::summarise(*copy).value();
  EXPECT_EQ(after.runs, before.runs);
  EXPECT_EQ(after.letters, before.letters);
  EXPECT_EQ(after.tokens, before.tokens);
  EXPECT_EQ(after.runs, moved->source.runs);
  EXPECT_EQ(after.counts.keys, before.counts.keys);
}

TEST_F(MoveTest, WorkGoesOnInTheCopy) {
  const Filled filled = fill();
  ASSERT_TRUE(move());
  const auto copy = open_copy();
  Verbs verbs(*copy);

  const Replay replay = as<Replay>(verbs.claim(again("done")));
  EXPECT_EQ(replay.run.id(), filled.done) << "done within its window: not done again";
  EXPECT_EQ(replay.run.as<Completed>()->result, std::string("\0binary\xff\n", 9));
  EXPECT_EQ(as<Busy>(verbs.claim(again("lock", Guard::while_running))).run.id(), filled.lock.run.id());
  as<Doubted>(verbs.claim([] {
    ClaimRequest careful = again("doubt");
    careful.fingerprint = sha256("request");
    return careful;
  }()));
  as<NotDue>(verbs.claim(again("between tries")));

  EXPECT_EQ(as<Won>(verbs.claim(again("given back", Guard::while_running))).run.id(), filled.given_back);

  // Owners go on with the fences they have, and nobody with an older one.
  as<Extended>(verbs.extend({{}, filled.taken.run.id(), filled.taken.fence, {}}));
  EXPECT_EQ(code_of(verbs.settle({{}, filled.taken.run.id(), Fence{1}, Complete{}})), Code::LEASE_LOST);
  as<Settled>(verbs.settle({{}, filled.taken.run.id(), filled.taken.fence, Complete{"by a worker", {}}}));
  as<Settled>(verbs.settle({{}, filled.lock.run.id(), filled.lock.fence, Complete{}}));

  // What waited is let go by what it waited for.
  EXPECT_TRUE(verbs.take({{}, {"second"}, 1, some_id(), {}}).empty());
  as<Settled>(verbs.settle({{}, filled.first.run.id(), filled.first.fence, Complete{}}));
  const auto released = verbs.take({{}, {"second"}, 1, some_id(), {}});
  ASSERT_EQ(released.size(), 1u);
  EXPECT_EQ(released[0].run.id(), filled.dependent);

  // The same enqueue again, its reply lost over the move, is the same run.
  EnqueueRequest call = a_job("");
  call.function = "later";
  call.input = "{}";
  call.claim = filled.call;
  EXPECT_EQ(as<Enqueued>(verbs.enqueue(call)).run.id(), filled.called);
}

TEST_F(MoveTest, FencesAndIdsGoOnRising) {
  const Filled filled = fill();
  ASSERT_TRUE(move());
  const auto copy = open_copy();
  Verbs verbs(*copy);
  const Won fresh = as<Won>(verbs.claim(again("fresh")));
  EXPECT_GT(static_cast<std::uint64_t>(fresh.fence), filled.fence);
  EXPECT_GT(uuid_counter(fresh.run.id()), filled.counter);
  as<Settled>(verbs.settle({{}, filled.lock.run.id(), filled.lock.fence, Complete{}}));
  EXPECT_GT(as<Won>(verbs.claim(again("lock", Guard::while_running))).fence, filled.lock.fence);
  EXPECT_GE(std::stoll(ask("SELECT last_value FROM latchkey.clock")), to_ms(filled.lock.lease_until) - 600'000);
}

// Where sequences begin: the only fence must not be drawn a second time.
TEST_F(MoveTest, AStoreWithOneFenceGoesOnBehindIt) {
  Won only;
  {
    const auto store = *open_file();
    as<Enqueued>(Verbs(*store).enqueue(a_job("before")));
    only = as<Won>(Verbs(*store).claim(again("k", Guard::while_running)));
    as<Settled>(Verbs(*store).settle({{}, only.run.id(), only.fence, Complete{}}));
  }
  ASSERT_TRUE(move());
  ASSERT_EQ(only.fence, Fence{1});
  EXPECT_GT(std::stoll(ask("SELECT nextval('latchkey.fences')")), 1);
  EXPECT_GT(std::stoull(ask("SELECT nextval('latchkey.counters')")), uuid_counter(only.run.id()));
  const Won next = as<Won>(Verbs(*open_copy()).claim(again("k", Guard::while_running)));
  EXPECT_GT(next.fence, only.fence);
  EXPECT_NE(uuid_counter(next.run.id()), uuid_counter(only.run.id()));
}

// More than goes into one statement.
TEST_F(MoveTest, LargeInputsAndResultsGoInSlices) {
  {
    const auto store = *open_file();
    for (int i = 0; i < 5; ++i) {
      ClaimRequest request = again("large" + std::to_string(i));
      request.input = std::string(3 << 20, static_cast<char>(i));
      const Won won = as<Won>(Verbs(*store).claim(request));
      as<Settled>(Verbs(*store).settle({{}, won.run.id(), won.fence, Complete{std::string(2 << 20, 'r'), {}}}));
    }
  }
  const auto moved = move();
  ASSERT_TRUE(moved) << to_string(moved.error());
  EXPECT_EQ(ask("SELECT sum(length(input)) FROM latchkey.runs"), std::to_string(5 * (3 << 20)));
}

// As a server connects: neither the owner nor a superuser.
TEST_F(MoveTest, AServersOwnRoleIsEnough) {
  fill();
  ASSERT_TRUE(migrations::prepare_own_schema(url_, random_));
  ask("DO $$ BEGIN CREATE ROLE plain_mover LOGIN; EXCEPTION WHEN duplicate_object THEN END $$; "
      "GRANT latchkey_engine, latchkey_tenant, latchkey_service TO plain_mover");
  const std::string url = url_ + (url_.find('?') == url_.npos ? "?" : "&") + "user=plain_mover";
  ASSERT_EQ(PgClient(url).ask_one("SELECT current_user"), "plain_mover");
  const auto moved = moving::move_store({.file = store_file(), .url = url}, clock_, random_);
  ASSERT_TRUE(moved) << to_string(moved.error());
  EXPECT_EQ(moved->source, *moved->target);
}

TEST_F(MoveTest, AWorkerSettlesThroughTheNewServer) {
  Heard won;
  std::string token;
  {
    const auto service = Service::start({.data_dir = data_dir_, .listen = "127.0.0.1:0"}).value();
    std::ifstream(service->admin_key_file()) >> token;
    Caller caller(service->url(), token);
    won = caller.claim("k", R"(,"lease_ms":600000)");
    ASSERT_EQ(won.status, 201) << won.body;
    EXPECT_EQ(refusal(), Code::STORE_LOCKED) << "a server owns the file";
    EXPECT_EQ(ask("SELECT count(*) FROM pg_namespace WHERE nspname = 'latchkey'"), "0") << "nothing was touched";
  }
  ASSERT_TRUE(move());
  const auto service = Service::start({.data_dir = data_dir_, .listen = "127.0.0.1:0", .store = url_}).value();
  Caller caller(service->url(), token);
  EXPECT_EQ(caller.claim("k").at("/code"), "ALREADY_RUNNING");
  EXPECT_EQ(caller.settle(won, "complete", R"(,"result":{"paid":true})").status, 200)
      << "with token and fence as before";
  EXPECT_EQ(caller.claim("k").at("/result/paid"), "true");
}

TEST_F(MoveTest, TheFileIsOpenedByNobodyAnyMore) {
  fill();
  ASSERT_TRUE(move());
  const auto opened = open_file();
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Code::STORE_MOVED);
  EXPECT_THAT(opened.error().detail, HasSubstr("was moved to PostgreSQL at 127.0.0.1:"));
  const Answer run_again = call(run("done", "echo twice"));
  EXPECT_EQ(run_again.exit, 69);
  EXPECT_EQ(run_again.out, "");
  EXPECT_THAT(run_again.err, HasSubstr("STORE_MOVED"));

  const auto repeat = move();
  ASSERT_TRUE(repeat) << to_string(repeat.error());
  EXPECT_FALSE(repeat->target) << "it is there already";
  const std::string elsewhere = PgServer::instance().borrow_database();
  EXPECT_EQ(moving::move_store({.file = store_file(), .url = elsewhere}, clock_, random_).error().code,
            Code::STORE_MOVED);
  PgServer::instance().give_back(elsewhere);

  EXPECT_EQ(call({"move", "--unmark"}).exit, 0);
  EXPECT_TRUE(open_file());
  EXPECT_THAT(call({"move", "--unmark"}).out, HasSubstr("has no mark"));
}

TEST_F(MoveTest, WhatIsNoStoreIsRefusedAndNotTouched) {
  EXPECT_EQ(refusal(), Code::NOT_FOUND);
  EXPECT_FALSE(std::filesystem::exists(store_file()));
  EXPECT_FALSE(std::filesystem::exists(store_file() + ".lock"));
  std::ofstream(store_file()) << "";
  EXPECT_EQ(refusal(), Code::STORE_FORMAT);
  EXPECT_EQ(std::filesystem::file_size(store_file()), 0u);
  std::ofstream(store_file()) << "something else altogether, long enough to be looked at as a database's head";
  EXPECT_EQ(refusal(), Code::STORE_FORMAT);
  EXPECT_EQ(ask("SELECT count(*) FROM pg_namespace WHERE nspname = 'latchkey'"), "0");
}

TEST_F(MoveTest, ASchemaOfAnotherVersionIsRefused) {
  fill();
  ASSERT_EQ(call({"migrate", "up", "--to", "2", "--database", url_}).exit, 0);
  EXPECT_EQ(refusal(), Code::SCHEMA_OLDER);
  ASSERT_EQ(call({"migrate", "up", "--database", url_}).exit, 0);
  ask("INSERT INTO latchkey.migrations VALUES (9999, 'future', 'x')");
  EXPECT_EQ(refusal(), Code::SCHEMA_NEWER);
  EXPECT_EQ(ask("SELECT count(*) FROM latchkey.runs"), "0");
  EXPECT_TRUE(open_file()) << "the file goes on being used";
}

TEST_F(MoveTest, ATargetThatHoldsSomethingIsRefused) {
  fill();
  as<Won>(Verbs(*open_copy()).claim(again("there before")));
  const auto refused = move();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::STORE_NOT_EMPTY);
  EXPECT_THAT(refused.error().detail, HasSubstr("runs, keys"));
  EXPECT_EQ(ask("SELECT count(*) FROM latchkey.runs"), "1");
  EXPECT_TRUE(open_file());
}

// A kept file that went on being used is not what was copied.
TEST_F(MoveTest, AKeptFileGoesOnAndItsOldCopyIsNotTakenForIt) {
  fill();
  const auto first = move(true);
  ASSERT_TRUE(first) << to_string(first.error());
  EXPECT_FALSE(first->is_marked);
  EXPECT_TRUE(move(true)) << "the same copy is there";
  as<Won>(Verbs(**open_file()).claim(again("one more")));
  EXPECT_EQ(refusal(), Code::STORE_NOT_EMPTY);
  EXPECT_TRUE(open_file());
  // As its page says.
  ASSERT_EQ(call({"migrate", "down", "--to", "0", "--yes", "--database", url_}).exit, 0);
  EXPECT_TRUE(move());
}

// Every transaction may get another server connection there.
TEST_F(MoveTest, ThroughAPooler) {
  fill(1'200);
  const PgBouncer bouncer(PgServer::instance().port(), 2);
  const std::string pooled = bouncer.url(url_.substr(url_.rfind('/') + 1));
  const auto moved = moving::move_store({.file = store_file(), .url = pooled}, clock_, random_);
  ASSERT_TRUE(moved) << to_string(moved.error());
  EXPECT_EQ(moved->source, *moved->target);
}

TEST_F(MoveTest, OnATerminalItShowsHowFarItIs) {
  fill(2'500);
  auto terminal = start_on_terminal(words());
  EXPECT_THAT(terminal.read_until("verified: "),
              ::testing::AllOf(HasSubstr("copied 1000 runs"), HasSubstr("verifying")));
  EXPECT_EQ(terminal.finish(), 0);
}

// Whatever changes a row on its way is found, wherever it is.
TEST_F(MoveTest, ACopyThatDiffersIsNoticedAndUndone) {
  fill();
  ASSERT_TRUE(migrations::prepare_own_schema(url_, random_));
  const std::vector<std::pair<std::string, std::string>> tampers{
      {"states", "NEW.result := NEW.result || '\\x00'::bytea"},
      {"states", "NEW.fence := NEW.fence + 1"},
      {"states", "NEW.lease_until := NEW.lease_until + 1"},
      {"runs", "NEW.input := NULL"},
      {"keys", "NEW.seq := NEW.seq + 100000"},
      {"waits", "RETURN NULL"},
      {"duplicates", "RETURN NULL"},
      {"dead_letters", "NEW.count := NEW.count + 1"},
      {"dead_letter_members", "NEW.reason := 'x'"},
      {"dead_letter_steps", "NEW.actor := 'eve'"},
      {"tokens", "NEW.role := 3"}};
  for (const auto& [table, change] : tampers) {
    ask("CREATE SCHEMA held; GRANT USAGE ON SCHEMA held TO PUBLIC; CREATE FUNCTION held.tamper() RETURNS trigger "
        "LANGUAGE plpgsql AS $$ BEGIN " +
        change + "; RETURN NEW; END $$; CREATE TRIGGER tamper BEFORE INSERT ON latchkey." + table +
        " FOR EACH ROW EXECUTE FUNCTION held.tamper()");
    const auto refused = move();
    ASSERT_FALSE(refused) << table << ": " << change;
    EXPECT_EQ(refused.error().code, Code::COPY_DIFFERS) << table << ": " << change << ": " << refused.error().detail;
    EXPECT_EQ(ask("SELECT (SELECT count(*) FROM latchkey.runs) + (SELECT count(*) FROM latchkey.tokens)"), "0");
    EXPECT_TRUE(open_file()) << "the file goes on being used";
    ask("DROP SCHEMA held CASCADE");
  }
  EXPECT_TRUE(move());
}

// The binary, held up by the database at a chosen point while a session of the test's holds an advisory lock.
class MoveKilled : public MoveTest {
 protected:
  // `when`: BEFORE or AFTER with its table; a CONSTRAINT trigger that is deferred fires at the commit.
  void hold_up(const std::string& trigger) {
    ASSERT_TRUE(migrations::prepare_own_schema(url_, random_));
    ask("CREATE SCHEMA held; CREATE FUNCTION held.wait() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN PERFORM pg_advisory_xact_lock(77); RETURN NEW; END $$; " +
        trigger);
    gate_.execute("SELECT pg_advisory_lock(77)");
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
  void end_backend() {
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
};

TEST_F(MoveKilled, InTheMiddleNothingHasHappened) {
  fill(1'200);
  hold_up(kInTheMiddle);
  kill_it();
  EXPECT_TRUE(open_file()) << "the file goes on being used";
  end_backend();
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
  end_backend();
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

TEST_F(MoveKilled, AConnectionThatGoesAtTheCommitIsToldAndRunAgain) {
  fill();
  hold_up(kAtTheCommit);
  const auto mover = start(words());
  wait_until_held_up();
  end_backend();
  EXPECT_EQ(mover->finish(), 69);
  EXPECT_THAT(mover->err, HasSubstr("run the move again"));
  EXPECT_EQ(open_file().error().code, Code::STORE_MOVED) << "whether it was committed cannot be known here";
  open_gate();
  EXPECT_EQ(call(words()).exit, 0);
}

TEST_F(MoveKilled, ACommitThatIsRefusedLeavesTheFileInUse) {
  fill();
  ASSERT_TRUE(migrations::prepare_own_schema(url_, random_));
  ask("CREATE SCHEMA held; CREATE FUNCTION held.wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no'; END "
      "$$; " +
      std::string(kAtTheCommit));
  EXPECT_EQ(refusal(), Code::STORE_UNAVAILABLE);
  EXPECT_EQ(ask("SELECT count(*) FROM latchkey.runs"), "0");
  EXPECT_TRUE(open_file());
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

TEST_F(MoveTest, TheCommandSaysWhatItDid) {
  fill();
  EXPECT_EQ(call({"move"}).exit, 2);
  EXPECT_EQ(call({"move", "--to", "sqlite:x"}).exit, 2);
  EXPECT_EQ(call({"move", "--from", "x.db", "--to", url_}).exit, 2);
  EXPECT_EQ(call({"move", "--from", "sqlite:" + file("none.db"), "--to", url_}).exit, 1);
  const Answer help = call({"move", "--help"});
  EXPECT_THAT(help.out, HasSubstr("Examples:"));

  const Answer kept = call(words({"--keep"}));
  EXPECT_EQ(kept.exit, 0) << kept.err;
  EXPECT_THAT(kept.out, ::testing::ContainsRegex("runs completed +4 +4"));
  EXPECT_THAT(kept.out, HasSubstr("verified: "));
  EXPECT_THAT(kept.out, HasSubstr("is not marked"));
  EXPECT_EQ(kept.err, "") << "progress is for terminals";
  const std::string hash = kept.out.substr(kept.out.find("PostgreSQL store  ") + 18, 64);
  EXPECT_EQ(kept.out.substr(kept.out.find("SQLite store      ") + 18, 64), hash);

  const Answer moved = call(words({"--json"}));
  EXPECT_EQ(moved.exit, 0) << moved.err;
  const Heard json{.status = 0, .body = moved.out, .headers = {}};
  EXPECT_EQ(json.at("/source/sha256"), hash);
  EXPECT_EQ(json.at("/source/runs_running"), "3");
  EXPECT_EQ(json.at("/verified"), "true");
  EXPECT_EQ(json.at("/copied"), "false") << "the copy was there";
  EXPECT_EQ(json.at("/marked"), "true");
  EXPECT_THAT(moved.out, Not(HasSubstr("postgres://"))) << "a URL may have a password";
}

}  // namespace
}  // namespace latchkey
