// An embedded store moved into PostgreSQL: everything is copied, and work continues in the copy.
#include "api/service_fixture.hpp"
#include "migrate/own_schema.hpp"
#include "support/postgres/pg_bouncer.hpp"
#include "transfer/transfer_fixture.hpp"

namespace latchkey {
namespace {

// covers: X2
TEST_F(MoveTest, CopyEqualsTheFile) {
  fill(3'000);
  Summary before = transfer::summarise(**open_file()).value();
  const auto moved = move();
  ASSERT_TRUE(moved) << to_string(moved.error());
  EXPECT_EQ(moved->source, *moved->target);
  EXPECT_TRUE(moved->is_file_closed);
  const auto& counts = moved->source.counts;
  EXPECT_GT(counts.all_runs(), 3'000u);
  for (const std::uint64_t runs : counts.runs) EXPECT_GT(runs, 0u) << "the file has runs of every status";
  EXPECT_EQ(counts.waits, 1u);
  EXPECT_EQ(counts.duplicates, 1u);
  EXPECT_EQ(counts.dead_letters, 2u);
  EXPECT_EQ(counts.members, 5u) << "two generations of one run, and three more runs";
  EXPECT_EQ(counts.steps, 1u);
  EXPECT_EQ(counts.tokens, 2u);
  EXPECT_EQ(ask("SELECT count(*) FROM latchkey.tenants"), "2");

  // The store's interface, as a server uses it, gives the same summary.
  const auto copy = open_copy();
  const Summary after = transfer::summarise(*copy).value();
  EXPECT_EQ(after.runs, before.runs);
  EXPECT_EQ(after.dead_letters, before.dead_letters);
  EXPECT_EQ(after.tokens, before.tokens);
  EXPECT_EQ(after.runs, moved->source.runs);
  EXPECT_EQ(after.counts.keys, before.counts.keys);
}

// A text in PostgreSQL holds neither NUL nor invalid UTF-8. Names in the file may hold both.
TEST_F(MoveTest, NamesWithInvalidTextAreEscaped) {
  const std::string name("a\\b\0\xc3\xa9\xff", 7);
  {
    const auto store = *open_file();
    Verbs verbs(*store);
    const Won won = as<Won>(verbs.claim(again("bad")));
    const Settled failed = as<Settled>(verbs.settle({{}, won.run.id(), won.fence, permanent("no")}));
    ASSERT_TRUE(
        store->act_on_dead_letter({.dead_letter = *failed.dead_letter, .runs = {}, .move = RetryByHand{}, .by = name})
            .value());
    ASSERT_TRUE(store->acknowledge({}, *failed.dead_letter, name).value());
    ASSERT_TRUE(store->add_token(
        {.id = "aa00000000000000", .secret_hash = sha256("t"), .name = name, .role = Role::admin, .created_at = {}}));
    ASSERT_TRUE(store->add_token(
        {.id = "bb00000000000000", .secret_hash = sha256("u"), .name = "a\\b\xc3\xa9", .role = Role::admin}));
  }
  const auto moved = move();
  ASSERT_TRUE(moved) << to_string(moved.error());
  EXPECT_EQ(moved->source, *moved->target);
  const std::string readable = R"(a\\b\000\303\251\377)";
  EXPECT_EQ(ask(R"(SELECT encode('\x615c6200c3a9ff', 'escape'))"), readable)
      << "the same escape format as PostgreSQL's encode()";
  EXPECT_EQ(ask("SELECT acknowledged_by FROM latchkey.dead_letters"), readable);
  EXPECT_EQ(ask("SELECT actor FROM latchkey.dead_letter_steps"), readable);
  EXPECT_EQ(ask("SELECT name FROM latchkey.tokens WHERE id = 'aa00000000000000'"), readable);
  EXPECT_EQ(ask("SELECT name FROM latchkey.tokens WHERE id = 'bb00000000000000'"), "a\\b\xc3\xa9")
      << "valid text stays unchanged";
  const auto repeat = move();
  ASSERT_TRUE(repeat) << to_string(repeat.error());
  EXPECT_FALSE(repeat->target) << "the second move recognises its copy";
}

// covers: X2
TEST_F(MoveTest, WorkContinuesInTheCopy) {
  const Filled filled = fill();
  ASSERT_TRUE(move());
  const auto copy = open_copy();
  Verbs verbs(*copy);

  const Replay replay = as<Replay>(verbs.claim(again("done")));
  EXPECT_EQ(replay.run.id(), filled.done) << "the window has not ended, so the result is replayed";
  EXPECT_EQ(replay.run.as<Completed>()->result, std::string("\0binary\xff\n", 9));
  EXPECT_EQ(as<Busy>(verbs.claim(again("lock", Guard::while_running))).run.id(), filled.lock.run.id());
  as<InDoubtReply>(verbs.claim([] {
    ClaimRequest careful = again("doubt");
    careful.fingerprint = sha256("request");
    return careful;
  }()));
  as<NotDue>(verbs.claim(again("between tries")));

  EXPECT_EQ(as<Won>(verbs.claim(again("given back", Guard::while_running))).run.id(), filled.given_back);

  // Owners continue with their fences; an older fence is rejected.
  as<Extended>(verbs.extend({{}, filled.taken.run.id(), filled.taken.fence, {}}));
  EXPECT_EQ(code_of(verbs.settle({{}, filled.taken.run.id(), Fence{1}, Complete{}})), Code::LEASE_LOST);
  as<Settled>(verbs.settle({{}, filled.taken.run.id(), filled.taken.fence, Complete{"by a worker", {}}}));
  as<Settled>(verbs.settle({{}, filled.lock.run.id(), filled.lock.fence, Complete{}}));

  // A settled predecessor releases the run that waited for it.
  EXPECT_TRUE(verbs.take({{}, {"second"}, 1, some_id(), {}}).empty());
  as<Settled>(verbs.settle({{}, filled.first.run.id(), filled.first.fence, Complete{}}));
  const auto released = verbs.take({{}, {"second"}, 1, some_id(), {}});
  ASSERT_EQ(released.size(), 1u);
  EXPECT_EQ(released[0].run.id(), filled.dependent);

  // A caller whose reply was lost during the move repeats the enqueue and gets the same run.
  EnqueueRequest call = a_job("");
  call.function = "later";
  call.input = "{}";
  call.claim = filled.call;
  EXPECT_EQ(as<Enqueued>(verbs.enqueue(call)).run.id(), filled.called);
}

TEST_F(MoveTest, FencesAndIdsContinueToRise) {
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

// A sequence's first value needs care: the store's only fence must not be drawn a second time.
TEST_F(MoveTest, StoreWithOneFenceContinuesAfterIt) {
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

// The file itself records the highest fence, because the newest runs may have been purged. PostgreSQL draws a thousand
// fences at once, so the test uses more than that.
TEST_F(MoveTest, FencesContinueAfterPurgedRuns) {
  Won newest;
  {
    const auto store = *open_file();
    Verbs verbs(*store);
    const Won oldest = as<Won>(verbs.claim(again("oldest")));
    fill_many(*store, 6'000);
    newest = as<Won>(verbs.claim(again("k", Guard::while_running)));
    as<Settled>(verbs.settle({{}, newest.run.id(), newest.fence, Complete{}}));
    while (verbs.purge({.done = {}, .failed = {}}).more) continue;
    ASSERT_FALSE(store->find({}, newest.run.id()).value());
    ASSERT_GT(static_cast<std::uint64_t>(newest.fence), static_cast<std::uint64_t>(oldest.fence) + 2'500);
  }
  ASSERT_TRUE(move());
  const Won next = as<Won>(Verbs(*open_copy()).claim(again("k", Guard::while_running)));
  EXPECT_GT(next.fence, newest.fence);
  EXPECT_GT(uuid_counter(next.run.id()), uuid_counter(newest.run.id()));
}

// The payloads exceed the size of one statement.
TEST_F(MoveTest, LargeInputsAndResultsAreCopiedInSlices) {
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

// The role that a server uses: neither the owner nor a superuser.
TEST_F(MoveTest, ServerRoleMayMove) {
  fill();
  ASSERT_TRUE(migrate::prepare_own_schema(url_, random_));
  ask("DO $$ BEGIN CREATE ROLE plain_mover LOGIN; EXCEPTION WHEN duplicate_object THEN END $$; "
      "GRANT latchkey_engine, latchkey_tenant, latchkey_service TO plain_mover");
  const std::string url = url_ + (url_.find('?') == url_.npos ? "?" : "&") + "user=plain_mover";
  ASSERT_EQ(PgClient(url).ask_one("SELECT current_user"), "plain_mover");
  const auto moved = transfer::transfer_store({.file = store_file(), .url = url}, clock_, random_);
  ASSERT_TRUE(moved) << to_string(moved.error());
  EXPECT_EQ(moved->source, *moved->target);
}

// Neither the move nor a server on the copy depends on the database's transaction defaults.
TEST_F(MoveTest, MoveIgnoresDatabaseDefaults) {
  const std::string database = url_.substr(url_.rfind('/') + 1);
  fill();
  PgClient(url_).execute("ALTER DATABASE " + database + " SET default_transaction_read_only = on; ALTER DATABASE " +
                         database + " SET default_transaction_isolation = 'repeatable read'");
  ASSERT_EQ(PgClient(url_).ask_one("SHOW transaction_read_only"), "on") << "the database's default is not in effect";
  const auto moved = move();
  const bool serves = std::holds_alternative<Won>(Verbs(*open_copy()).claim(a_claim("fresh")));
  PgClient(url_).execute("BEGIN READ WRITE; ALTER DATABASE " + database +
                         " RESET default_transaction_read_only; ALTER DATABASE " + database +
                         " RESET default_transaction_isolation; COMMIT");
  ASSERT_TRUE(moved) << to_string(moved.error());
  EXPECT_EQ(moved->source, *moved->target);
  EXPECT_TRUE(serves);
}

TEST_F(MoveTest, CommitIsDurableForAnySynchronousCommit) {
  fill();
  ASSERT_TRUE(migrate::prepare_own_schema(url_, random_));
  ask("CREATE SCHEMA held; GRANT USAGE ON SCHEMA held TO PUBLIC; CREATE FUNCTION held.refuse() RETURNS trigger "
      "LANGUAGE "
      "plpgsql AS $$ BEGIN RAISE 'found %', current_setting('synchronous_commit') || ' ' || "
      "current_setting('row_security') || ' ' || current_setting('client_min_messages'); END $$; CREATE TRIGGER refuse "
      "BEFORE INSERT ON latchkey.batches FOR EACH ROW EXECUTE FUNCTION held.refuse()");
  for (const auto& [set, effective] : {std::pair{"off", "on"},
                                       {"local", "on"},
                                       {"remote_write", "on"},
                                       {"on", "on"},
                                       {"remote_apply", "remote_apply"}}) {
    const std::string url =
        url_ + "?options=-csynchronous_commit%3D" + set + "%20-crow_security%3Doff%20-cclient_min_messages%3Derror";
    const auto refused = transfer::transfer_store({.file = store_file(), .url = url}, clock_, random_);
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().detail, HasSubstr(std::string("found ") + effective + " on warning")) << set;
  }
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
    EXPECT_EQ(refusal(), Code::STORE_LOCKED) << "a server still owns the file";
    EXPECT_EQ(ask("SELECT count(*) FROM pg_namespace WHERE nspname = 'latchkey'"), "0") << "the target was not changed";
  }
  ASSERT_TRUE(move());
  const auto service = Service::start({.data_dir = data_dir_, .listen = "127.0.0.1:0", .store = url_}).value();
  Caller caller(service->url(), token);
  EXPECT_EQ(caller.claim("k").at("/code"), "ALREADY_RUNNING");
  EXPECT_EQ(caller.settle(won, "complete", R"(,"result":{"paid":true})").status, 200)
      << "the worker uses its old token and fence";
  EXPECT_EQ(caller.claim("k").at("/result/paid"), "true");
}

// A pooler may run every transaction on another server connection.
TEST_F(MoveTest, MoveThroughPoolerSucceeds) {
  fill(1'200);
  const PgBouncer bouncer(PgServer::instance().port(), 2);
  const std::string pooled = bouncer.url(url_.substr(url_.rfind('/') + 1));
  const auto moved = transfer::transfer_store({.file = store_file(), .url = pooled}, clock_, random_);
  ASSERT_TRUE(moved) << to_string(moved.error());
  EXPECT_EQ(moved->source, *moved->target);
}

TEST_F(MoveTest, TerminalShowsProgress) {
  fill(2'500);
  auto terminal = start_on_terminal(words());
  EXPECT_THAT(terminal.read_until("verified: "),
              ::testing::AllOf(HasSubstr("copied 1000 runs"), HasSubstr("verifying")));
  EXPECT_EQ(terminal.finish(), 0);
}

TEST_F(MoveTest, CommandReportsCountsAndHash) {
  fill();
  EXPECT_EQ(call({"move"}).exit, 2);
  EXPECT_EQ(call({"move", "--to", "sqlite:x"}).exit, 2);
  EXPECT_EQ(call({"move", "--from", "x.db", "--to", url_}).exit, 2);
  EXPECT_EQ(call({"move", "--from", "sqlite:" + file("none.db"), "--to", url_}).exit, 1);
  const Answer help = call({"move", "--help"});
  EXPECT_THAT(help.out, HasSubstr("Examples:"));

  const Answer copied = call(words({"--keep"}));
  EXPECT_EQ(copied.exit, 0) << copied.err;
  EXPECT_THAT(copied.out, ::testing::ContainsRegex("runs completed +4 +4"));
  EXPECT_THAT(copied.out, HasSubstr("verified: "));
  EXPECT_THAT(copied.out, HasSubstr("is not marked"));
  EXPECT_EQ(copied.err, "") << "progress is shown on terminals only";
  const std::string hash = copied.out.substr(copied.out.find("PostgreSQL store  ") + 18, 64);
  EXPECT_EQ(copied.out.substr(copied.out.find("SQLite store      ") + 18, 64), hash);

  const Answer moved = call(words({"--json"}));
  EXPECT_EQ(moved.exit, 0) << moved.err;
  const Heard json{.status = 0, .body = moved.out, .headers = {}};
  EXPECT_EQ(json.at("/source/sha256"), hash);
  EXPECT_EQ(json.at("/source/runs_running"), "3");
  EXPECT_EQ(json.at("/verified"), "true");
  EXPECT_EQ(json.at("/copied"), "false") << "the copy already existed";
  EXPECT_EQ(json.at("/marked"), "true");
  EXPECT_THAT(moved.out, Not(HasSubstr("postgres://"))) << "a URL may contain a password";
}

}  // namespace
}  // namespace latchkey
