// Moves that are rejected, and files that were moved: only one store remains in use.
#include <signal.h>

#include "migrate/own_schema.hpp"
#include "server/service.hpp"
#include "transfer/transfer_fixture.hpp"

namespace latchkey {
namespace {

TEST_F(MoveTest, FileIsNotOpenedAgain) {
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
  EXPECT_FALSE(repeat->target) << "the copy already exists";
  const std::string elsewhere = PgServer::instance().borrow_database();
  EXPECT_EQ(transfer::transfer_store({.file = store_file(), .url = elsewhere}, clock_, random_).error().code,
            Code::STORE_MOVED);
  PgServer::instance().give_back(elsewhere);

  const Answer unasked = call({"move", "--unmark"});
  EXPECT_EQ(unasked.exit, 2);
  EXPECT_THAT(unasked.err, HasSubstr("is then done a second time"));
  EXPECT_FALSE(open_file()) << "the mark is unchanged";
  EXPECT_EQ(call({"move", "--unmark", "--yes"}).exit, 0);
  EXPECT_TRUE(open_file());
  EXPECT_THAT(call({"move", "--unmark", "--yes"}).out, HasSubstr("has no mark"));
}

TEST_F(MoveTest, MovedFolderNamesTheNewServerUntilReopened) {
  fill();
  ASSERT_TRUE(move());
  const auto server = start({"serve", "--listen", "127.0.0.1:0", "--store", url_});
  ASSERT_THAT(server->read_line(), HasSubstr("http://"));
  EXPECT_EQ(call(run("after", "echo through")).out, "through\n");
  EXPECT_EQ(call({"move", "--unmark", "--yes"}).exit, 75) << "the server still runs";
  server->signal(SIGTERM);
  ASSERT_EQ(server->finish(), 0);
  EXPECT_THAT(call(run("after", "echo again")).err, HasSubstr("SERVER_UNREACHABLE"));
  ASSERT_EQ(call({"move", "--unmark", "--yes"}).exit, 0);
  EXPECT_EQ(call(run("new", "echo in the file")).out, "in the file\n");
}

TEST_F(MoveTest, FileOwnedByServerIsNotMoved) {
  environment_.back() = "LATCHKEY_STORE=sqlite:" + store_file();
  const auto server = start({"serve", "--listen", "127.0.0.1:0"});
  ASSERT_THAT(server->read_line(), HasSubstr("http://"));
  EXPECT_EQ(call(run("before", "echo served")).out, "served\n");
  for (const Words& flags : {Words{}, {"--keep"}, {"--from", "sqlite:" + store_file()}}) {
    const Answer refused = call(words(flags));
    EXPECT_EQ(refused.exit, 75) << refused.err;
    EXPECT_EQ(refused.out, "");
    EXPECT_THAT(refused.err, HasSubstr("STORE_LOCKED"));
    EXPECT_EQ(ask("SELECT count(*) FROM pg_namespace WHERE nspname = 'latchkey'"), "0");
  }
  EXPECT_EQ(call(run("before", "echo twice")).out, "served\n") << "the server replays the earlier run";
  EXPECT_EQ(call(run("after", "echo still")).out, "still\n");
  server->signal(SIGTERM);
  ASSERT_EQ(server->finish(), 0);
  const Answer moved = call(words());
  EXPECT_EQ(moved.exit, 0) << moved.err;
  EXPECT_THAT(moved.out, HasSubstr("2 runs are in "));
}

// `--unmark` reopens the folder for commands, however the file was named.
TEST_F(MoveTest, UnmarkOfNamedFileReopensItsFolder) {
  fill();
  for (const std::string way : {"--from", "LATCHKEY_STORE"}) {
    ASSERT_TRUE(move());
    const auto server = start({"serve", "--listen", "127.0.0.1:0", "--store", url_});
    ASSERT_THAT(server->read_line(), HasSubstr("http://"));
    Words unmark{"move", "--unmark", "--yes"};
    if (way == "--from") unmark.insert(unmark.end(), {way, "sqlite:" + store_file()});
    if (way == "LATCHKEY_STORE") environment_.back() = "LATCHKEY_STORE=" + store_file();
    EXPECT_EQ(call(unmark).exit, 75) << "the server still runs";
    server->signal(SIGTERM);
    ASSERT_EQ(server->finish(), 0);
    ASSERT_EQ(call(unmark).exit, 0) << way;
    environment_.back() = "LATCHKEY_STORE=";
    const Answer after = call(run("new by " + way, "echo in the file"));
    EXPECT_EQ(after.out, "in the file\n") << after.err;
    ASSERT_EQ(call({"migrate", "down", "--to", "0", "--yes", "--database", url_}).exit, 0);
  }
}

// LATCHKEY_STORE applies to every command.
TEST_F(MoveTest, StoreVariableNamesTheSource) {
  fill();
  const std::string other = file("other.db");
  {
    const auto store = SqliteStore::open({.file = other}, clock_, random_);
    as<Won>(Verbs(**store).claim(again("of another store")));
  }
  environment_ = {"LATCHKEY_DATABASE=", "LATCHKEY_STORE=postgres://u:Sesame@h/d"};
  const Answer refused = call(words());
  EXPECT_EQ(refused.exit, 2) << refused.out;
  EXPECT_THAT(refused.err, HasSubstr("LATCHKEY_STORE names PostgreSQL"));
  EXPECT_THAT(refused.err, Not(HasSubstr("Sesame")));
  environment_.back() = "LATCHKEY_STORE=host=h";
  EXPECT_EQ(call(words()).exit, 2);
  EXPECT_TRUE(open_file()) << "the default file was not the source";
  environment_.back() = "LATCHKEY_STORE=sqlite:" + other;
  const Answer moved = call(words());
  EXPECT_EQ(moved.exit, 0) << moved.err;
  EXPECT_THAT(moved.out, HasSubstr("1 runs are in "));
  EXPECT_THAT(moved.out, HasSubstr(other + " is marked as moved"));
  EXPECT_TRUE(open_file());
  environment_.back() = "LATCHKEY_STORE=postgres://h/d";
  EXPECT_THAT(call(words({"--from", "sqlite:" + store_file()})).err, HasSubstr("STORE_NOT_EMPTY"))
      << "--from overrides the variable";
}

TEST_F(MoveTest, MoveIntoFileIsRejected) {
  const Answer refused = call({"move", "--to", "sqlite:" + file("x.db")});
  EXPECT_EQ(refused.exit, 2);
  EXPECT_THAT(refused.err, HasSubstr("moved into PostgreSQL only"));
}

TEST_F(MoveTest, FileThatIsNoStoreIsNotChanged) {
  EXPECT_EQ(refusal(), Code::NOT_FOUND);
  EXPECT_FALSE(std::filesystem::exists(store_file()));
  EXPECT_FALSE(std::filesystem::exists(store_file() + ".lock"));
  std::ofstream(store_file()) << "";
  EXPECT_EQ(refusal(), Code::STORE_FORMAT);
  EXPECT_EQ(std::filesystem::file_size(store_file()), 0u);
  std::ofstream(store_file()) << "something else altogether, long enough to be parsed as the header of a database";
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
  EXPECT_TRUE(open_file()) << "the file is still in use";
}

TEST_F(MoveTest, TargetWithContentIsRefused) {
  fill();
  as<Won>(Verbs(*open_copy()).claim(again("there before")));
  const auto refused = move();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::STORE_NOT_EMPTY);
  EXPECT_THAT(refused.error().detail, HasSubstr("runs, keys"));
  EXPECT_EQ(ask("SELECT count(*) FROM latchkey.runs"), "1");
  EXPECT_TRUE(open_file());
}

// A server that ran on the database before the move has created a token there. If that server used the same data
// directory, the file has the same token.
TEST_F(MoveTest, SameTokenInTargetDoesNotBlockMove) {
  ASSERT_TRUE(Service::start({.data_dir = data_dir_, .listen = "127.0.0.1:0"}));
  const ServeSettings on_copy{.data_dir = data_dir_, .listen = "127.0.0.1:0", .store = url_};
  {
    const auto service = Service::start(on_copy).value();
    const auto refused = move();
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::STORE_LOCKED) << "a running server caches fences that the file does not know";
    EXPECT_THAT(refused.error().detail, HasSubstr("latchkey "));
  }
  EXPECT_TRUE(open_file());
  ask("UPDATE latchkey.tokens SET revoked_at = 1");
  EXPECT_EQ(refusal(), Code::STORE_NOT_EMPTY) << "the move would undo the revocation";
  ask("UPDATE latchkey.tokens SET revoked_at = NULL, secret_hash = '\\x00'");
  EXPECT_EQ(refusal(), Code::STORE_NOT_EMPTY) << "a different token has the same id";
  ask("DELETE FROM latchkey.tokens");
  ASSERT_TRUE(Service::start(on_copy));
  fill();
  ask("INSERT INTO latchkey.tokens SELECT 'foreign', secret_hash, name, role, tenants, created_at FROM "
      "latchkey.tokens");
  EXPECT_EQ(refusal(), Code::STORE_NOT_EMPTY);
  ask("DELETE FROM latchkey.tokens WHERE id = 'foreign'");
  const auto moved = move();
  ASSERT_TRUE(moved) << to_string(moved.error());
  EXPECT_EQ(moved->source, moved->target);
  EXPECT_EQ(moved->source.counts.tokens, 3u);
}

// Such a copy holds nothing but the file's tokens.
TEST_F(MoveTest, StoreWithOnlyTokensIsMovedOnce) {
  ASSERT_TRUE(Service::start({.data_dir = data_dir_, .listen = "127.0.0.1:0"}));
  ASSERT_TRUE(move());
  const auto repeat = move();
  ASSERT_TRUE(repeat) << to_string(repeat.error());
  EXPECT_FALSE(repeat->target) << "the copy already exists";
}

// An unmarked file that was used after the move differs from its copy.
TEST_F(MoveTest, UnmarkedFileStaysInUseAndCopyIsStale) {
  fill();
  const auto first = move(true);
  ASSERT_TRUE(first) << to_string(first.error());
  EXPECT_FALSE(first->is_file_closed);
  EXPECT_TRUE(move(true)) << "the same copy exists";
  as<Won>(Verbs(**open_file()).claim(again("one more")));
  EXPECT_EQ(refusal(), Code::STORE_NOT_EMPTY);
  EXPECT_TRUE(open_file());
  // The way out that docs/errors names for STORE_NOT_EMPTY.
  ASSERT_EQ(call({"migrate", "down", "--to", "0", "--yes", "--database", url_}).exit, 0);
  EXPECT_TRUE(move());
}

// The comparison finds a row that changed on its way, in every table.
TEST_F(MoveTest, CopyThatDiffersIsRolledBack) {
  fill();
  ASSERT_TRUE(migrate::prepare_own_schema(url_, random_));
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
    EXPECT_TRUE(open_file()) << "the file is still in use";
    ask("DROP SCHEMA held CASCADE");
  }
  EXPECT_TRUE(move());
}

}  // namespace
}  // namespace latchkey
