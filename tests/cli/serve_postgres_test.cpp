// `latchkey serve --store postgres://…` as a service: its start, its refusals to start, and its end.
#include <algorithm>

#include "cli/serve_postgres_fixture.hpp"
#include "support/postgres/fault_proxy.hpp"
#include "support/postgres/pg_cluster.hpp"
#include "support/reserved_port.hpp"
#include "support/wait_until.hpp"

namespace latchkey {
namespace {

TEST_F(ServePostgres, ClaimAndRepeatAreServed) {
  const std::string claim = R"({"function":"f","key":"k","input":{"n":1}})";
  {
    auto server = serve(database_);
    EXPECT_THAT(server->read_line(), HasSubstr("store      " + database_));
    const std::string won = post("/v1/runs", claim);
    ASSERT_THAT(won, HasSubstr("201 Created"));
    EXPECT_THAT(post("/v1/runs", claim), AllOf(HasSubstr("409 "), HasSubstr("ALREADY_RUNNING")));
    EXPECT_THAT(post("/v1/runs/" + member(won, "id") + "/complete",
                     R"({"result":{"paid":true},"fence":)" + member(won, "fence") + "}"),
                HasSubstr("200 OK"));
    stop(*server);
  }
  EXPECT_FALSE(std::ifstream(file("data/latchkey.db")).good()) << "no store file is created";
  auto server = serve(database_);
  EXPECT_THAT(post("/v1/runs", claim), AllOf(HasSubstr("200 OK"), HasSubstr(R"("result":{"paid":true})")));
  stop(*server);
}

TEST_F(ServePostgres, TwoServersShareAStore) {
  auto one = serve(database_);
  const std::string claim = R"({"function":"f","key":"k"})";
  EXPECT_THAT(post("/v1/runs", claim), HasSubstr("201 Created"));
  auto two = serve(database_);
  EXPECT_THAT(post("/v1/runs", claim), HasSubstr("409 Conflict"));
  stop(*one);
  stop(*two);
}

// covers: X1
TEST_F(ServePostgres, CommandsUseTheServerOfTheirFolder) {
  auto server = serve(database_);
  EXPECT_EQ(call(run("a", "echo once; echo x >> " + file("log"))).out, "once\n");
  EXPECT_THAT(call({"runs", "list"}).out, HasSubstr(" a "));
  EXPECT_EQ(call(run("a", "echo twice", {"--quiet"})).out, "once\n");
  EXPECT_EQ(PgClient(database_).ask_one("SELECT count(*) FROM latchkey.runs"), "1");
  environment_ = {"LATCHKEY_DATABASE=", "PGPASSWORD="};
  const Answer embedded = call({"serve", "--listen", "127.0.0.1:0"});
  EXPECT_EQ(embedded.exit, 75) << "commands would not find a second server in the folder";
  EXPECT_THAT(embedded.err, HasSubstr("STORE_LOCKED: the server on PostgreSQL at http://"));
  stop(*server);
  for (const Words& words : {run("a", "echo twice"), Words{"runs", "list"}, Words{"dlq", "list"}}) {
    const Answer refused = call(words);
    EXPECT_EQ(refused.exit, 69) << words.front();
    EXPECT_EQ(refused.out, "");
    EXPECT_THAT(refused.err,
                AllOf(HasSubstr("SERVER_UNREACHABLE"), HasSubstr("start it, or name another one with --server URL")));
  }
  const Answer forgot = call({"serve", "--listen", "127.0.0.1:0"});
  EXPECT_EQ(forgot.exit, 2) << "its --store is missing";
  EXPECT_THAT(forgot.err, HasSubstr("is the data folder of a server on PostgreSQL: say its --store"));
  EXPECT_FALSE(std::filesystem::exists(file("data/latchkey.db")));
  EXPECT_EQ(read("log"), "x\n");
  // Without the address file, a command creates a store in a file.
  ASSERT_TRUE(std::filesystem::remove(file("data/postgres.server")));
  EXPECT_EQ(call(run("a", "echo in a file")).out, "in a file\n");
}

// covers: X1
TEST_F(ServePostgres, SecondServerIsFoundWhenTheFirstEnds) {
  auto one = serve(database_);
  const std::string first = read("data/postgres.server");
  auto two = serve(database_);
  EXPECT_EQ(read("data/postgres.server"), first);
  one->signal(SIGKILL);
  one->finish();
  ASSERT_TRUE(wait_until([&] { return call(run("a", "echo once", {"--quiet"})).out == "once\n"; }));
  EXPECT_NE(read("data/postgres.server"), first);
  ASSERT_TRUE(std::filesystem::remove(file("data/postgres.server")));
  EXPECT_TRUE(wait_until([&] { return std::filesystem::exists(file("data/postgres.server")); })) << "not put back";
  stop(*two);
}

TEST_F(ServePostgres, EmbeddedStoreInTheFolderStaysInUse) {
  ASSERT_EQ(call(run("a", "echo before")).exit, 0);
  environment_ = {"LATCHKEY_DATABASE=", "PGPASSWORD="};
  auto server = serve(database_);
  EXPECT_EQ(call(run("a", "echo again", {"--quiet"})).out, "before\n");
  stop(*server);
  EXPECT_THAT(server->err, HasSubstr("latchkey.db is a store of its own"));
  EXPECT_EQ(call(run("a", "echo again", {"--quiet"})).out, "before\n");
  stop(*start_embedded());
}

// A token of a server that never served would be valid on all others, and would block a transfer.
TEST_F(ServePostgres, ServerThatCannotListenLeavesNoToken) {
  const auto other =
      start({"serve", "--listen", "127.0.0.1:0", "--data-dir", file("other"), "--store", "sqlite:" + file("other.db")});
  const std::string line = other->read_line();
  const Answer refused = call({"serve", "--store", database_, "--listen", line.substr(line.find("127.0.0.1:"))});
  EXPECT_EQ(refused.exit, 69) << refused.out;
  EXPECT_THAT(refused.err, HasSubstr("LISTEN_FAILED"));
  EXPECT_EQ(PgClient(database_).ask_one("SELECT count(*) FROM latchkey.tokens"), "0");
  EXPECT_FALSE(std::ifstream(file("data/admin.key")).good());
  stop(*other);
  auto server = serve(database_);
  EXPECT_EQ(PgClient(database_).ask_one("SELECT count(*) FROM latchkey.tokens"), "1");
  stop(*server);
}

TEST_F(ServePostgres, UnknownUrlOptionIsNamed) {
  const Answer refused = call(serve_words(database_ + "?connect_timeout=2&sslmod=disable"));
  EXPECT_EQ(refused.exit, 2);
  EXPECT_THAT(refused.err, HasSubstr("`sslmod`; did you mean `sslmode`?"));
  for (const char* store : {"postgres://u:p?Sesame=1@127.0.0.1:1/x", "postgres://127.0.0.1:1/x?password=a&Sesame=1",
                            "postgres://u:p/q?Sesame=1@127.0.0.1:1/x"})
    EXPECT_THAT(call(serve_words(store)).err, Not(HasSubstr("Sesame")));
}

TEST_F(ServePostgres, StopsInTimeWhileTheDatabaseIsSilent) {
  FaultProxy proxy(PgServer::instance().port());
  auto server = serve(proxy.url(name()));
  ASSERT_THAT(post("/v1/runs", R"({"function":"f","key":"k"})"), HasSubstr("201 Created"));
  proxy.blackhole_all();
  ASSERT_TRUE(wait_until([&] { return proxy.blackholed() > 0; })) << "the server sends no queries by itself";
  SystemClock clock;
  const Duration start = clock.elapsed();
  stop(*server);
  EXPECT_LT(clock.elapsed() - start, std::chrono::seconds{12}) << "5 s for the shutdown, not the 15 s of a request";
}

// PostgreSQL stops responding at the first message, or at the COMMIT of the schema.
TEST_F(ServePostgres, SignalEndsAStartWithoutAResponse) {
  FaultProxy proxy(PgServer::instance().port());
  proxy.blackhole_all();
  auto one = start(serve_words(proxy.url(name())));
  ASSERT_TRUE(wait_until([&] { return proxy.blackholed() > 0; }));
  expect_an_early_end(*one, SIGINT);
  proxy.cut_all();
  proxy.arm(ConnectionFault{FaultAt::commit_request, FaultHow::blackhole});
  auto other = start(serve_words(proxy.url(name())));
  ASSERT_TRUE(wait_until([&] { return proxy.fired() > 0; }));
  expect_an_early_end(*other, SIGTERM);
  proxy.cut_all();
  stop(*serve(database_));
}

TEST_F(ServePostgres, SignalEndsAWaitForAMigration) {
  PgClient other(database_);
  other.execute("BEGIN; SELECT pg_advisory_xact_lock(7420, hashtext('latchkey.migrations'))");
  auto server = start(serve_words(database_));
  PgClient(database_).wait_until(
      "SELECT count(*) = 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'advisory'");
  expect_an_early_end(*server, SIGTERM);
  other.execute("ROLLBACK");
  stop(*serve(database_));
}

TEST_F(ServePostgres, UnreachableDatabaseIsReported) {
  const ReservedPort nowhere;
  const Answer refused = call(serve_words(url("latchkey", nowhere.host(), "app")));
  EXPECT_EQ(refused.exit, 69) << refused.err;
  EXPECT_EQ(refused.out, "");
  EXPECT_THAT(refused.err, AllOf(HasSubstr("latchkey: STORE_UNAVAILABLE: "), HasSubstr("Connection refused")));
  EXPECT_EQ(std::ranges::count(refused.err, '\n'), 1) << refused.err;
}

TEST_F(ServePostgres, MissingDatabaseIsReported) {
  const Answer refused = call(serve_words(url("latchkey", host(), "no_such_database")));
  EXPECT_EQ(refused.exit, 69) << refused.err;
  EXPECT_EQ(refused.out, "");
  EXPECT_THAT(refused.err, AllOf(HasSubstr("latchkey: STORE_UNAVAILABLE: "),
                                 HasSubstr("database \"no_such_database\" does not exist")));
}

TEST_F(ServePostgres, OlderSchemaIsReportedAndNotChanged) {
  ASSERT_EQ(call({"migrate", "up", "--database", database_, "--to", "1"}).exit, 0);
  const std::string before = schema_state();
  const Answer refused = call(serve_words(database_));
  EXPECT_EQ(refused.exit, 69) << refused.err;
  EXPECT_EQ(refused.out, "");
  EXPECT_THAT(refused.err, AllOf(HasSubstr("latchkey: SCHEMA_OLDER: "), HasSubstr("latchkey migrate up")));
  EXPECT_EQ(schema_state(), before);
  ASSERT_EQ(call({"migrate", "up", "--database", database_}).exit, 0);
  stop(*serve(database_));
}

TEST_F(ServePostgres, NewerSchemaIsReportedAndNotChanged) {
  ASSERT_EQ(call({"migrate", "up", "--database", database_}).exit, 0);
  PgClient(database_).execute("INSERT INTO latchkey.migrations VALUES (9999, 'future', 'x')");
  const std::string before = schema_state();
  const Answer refused = call(serve_words(database_));
  EXPECT_EQ(refused.exit, 69) << refused.err;
  EXPECT_EQ(refused.out, "");
  EXPECT_THAT(refused.err, HasSubstr("latchkey: SCHEMA_NEWER: "));
  EXPECT_EQ(schema_state(), before);
}

TEST_F(ServePostgres, StandbyAloneIsRefused) {
  PgCluster primary;
  const auto standby = PgCluster::make_standby(primary);
  const auto expect_refusal = [&](const std::string& more) {
    const Answer refused = call(serve_words(standby->url() + more));
    EXPECT_EQ(refused.exit, 69) << refused.err;
    EXPECT_EQ(refused.out, "");
    EXPECT_THAT(refused.err, AllOf(HasSubstr("latchkey: STORE_UNAVAILABLE: "),
                                   ::testing::AnyOf(HasSubstr("standby"), HasSubstr("read-only"))));
  };
  expect_refusal("");
  expect_refusal("?target_session_attrs=read-write");
  ASSERT_EQ(call({"migrate", "up", "--database", primary.url()}).exit, 0);
  PgClient(primary.url()).wait_until("SELECT replay_lsn >= pg_current_wal_lsn() FROM pg_stat_replication");
  expect_refusal("");
  expect_refusal("?target_session_attrs=read-write");
}

// Passwords with any characters, in the URL or as a parameter, with and without a successful start.
class ServeWithAPassword : public ServePostgres, public ::testing::WithParamInterface<std::string> {
 protected:
  static std::string secret() { return "Sesame"; }
  void expect_not_printed(const std::string& text) const { EXPECT_THAT(text, Not(HasSubstr(secret()))); }
};
INSTANTIATE_TEST_SUITE_P(With, ServeWithAPassword,
                         ::testing::Values("Sesame", "Sesame:a", "a:Sesame", "Sesame%3fa", "Sesame%40a", "a%2FSesame",
                                           "Sesame#a", "Sesame?a", "a?Sesame"));

TEST_P(ServeWithAPassword, IsNotPrintedFromTheUrl) {
  const std::string user = "latchkey:" + GetParam();
  auto server = serve(url(user, host(), name()));
  EXPECT_EQ(server->read_line(), "  store      " + database_);
  stop(*server);
  expect_not_printed(server->out + server->err);
  const ReservedPort nowhere;
  for (const std::string& wrong : {url(user, nowhere.host(), "app"), url(user, host(), "no_such_database")}) {
    const Answer refused = call(serve_words(wrong));
    EXPECT_EQ(refused.exit, 69);
    expect_not_printed(refused.out + refused.err);
  }
}

TEST_P(ServeWithAPassword, IsNotPrintedFromAParameter) {
  auto server = serve(database_ + "?sslmode=disable&password=" + GetParam());
  EXPECT_EQ(server->read_line(), "  store      " + database_);
  stop(*server);
  expect_not_printed(server->out + server->err);
}

// libpq quotes the parts of a URL that it cannot parse in its error message.
TEST_F(ServePostgres, UnescapedPasswordIsNotPrinted) {
  for (const char* store : {"postgres://latchkey:Sesame/a@127.0.0.1:1/x", "postgres://latchkey:a@Sesame@127.0.0.1:1/x",
                            "mysql://someone:Sesame@127.0.0.1/x"}) {
    const Answer refused = call(serve_words(store));
    EXPECT_NE(refused.exit, 0);
    EXPECT_THAT(refused.out + refused.err, Not(HasSubstr("Sesame")));
  }
}

}  // namespace
}  // namespace latchkey
