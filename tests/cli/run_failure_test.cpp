// The output for operators of failed, doubtful and completed runs, and of commands that a wrong place or token stops.
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "cli/cli_fixture.hpp"

namespace latchkey {
namespace {

class RunFailure : public CliTest {
 protected:
  static std::string id_in(const std::string& json) { return json.substr(json.find("\"id\":\"") + 6, 36); }
};

TEST_F(RunFailure, BothStreamsOfAFailureAreShown) {
  ASSERT_EQ(call(run("a", "echo one; echo two; echo warn >&2; echo boom >&2; exit 3")).exit, 3);
  const Answer shown = call({"runs", "show", "--key", "a"});
  EXPECT_EQ(shown.exit, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("error        exit status 3: boom\n"));
  EXPECT_THAT(shown.out, HasSubstr("\n--- stdout\none\ntwo\n--- stderr\nwarn\nboom\n"));
  EXPECT_THAT(shown.out, HasSubstr("code         EXIT_3\n")) << "there were no retries";
  EXPECT_THAT(shown.out, HasSubstr("none (the command reported failure)"));
  EXPECT_THAT(call({"runs", "list"}).out, HasSubstr("EXIT_3: exit status 3: boom\n"));
  const std::string letters = call({"dlq", "list"}).out;
  EXPECT_THAT(letters, HasSubstr("exit status 3: boom\n"));
  EXPECT_THAT(letters, HasSubstr("  ACK  "));
  const std::string letter = id_in(call({"dlq", "list", "--json"}).out);
  EXPECT_THAT(call({"dlq", "show", letter}).out, HasSubstr("--- stdout\none\ntwo\n--- stderr\nwarn\nboom\n"));
}

TEST_F(RunFailure, LongOutputOfAFailureIsCut) {
  ASSERT_EQ(call(run("a", "head -c 200000 /dev/zero | tr '\\0' o; echo END; echo boom >&2; exit 3")).exit, 3);
  const std::string shown = call({"runs", "show", "--key", "a"}).out;
  EXPECT_THAT(shown, HasSubstr("--- stdout (the end of 200004 bytes)\n"));
  EXPECT_THAT(shown, HasSubstr("oEND\n--- stderr\nboom\n"));
  EXPECT_LT(call({"runs", "list", "--json"}).out.size(), 4096u) << "lists have the first line";
}

TEST_F(RunFailure, QuietPrintsTheReason) {
  const Answer failed = call(run("a", "exit 3", {"--quiet"}));
  EXPECT_EQ(failed.exit, 3);
  EXPECT_THAT(failed.err, HasSubstr("latchkey: exit status 3 after 1 attempt; dead letter "));
}

TEST_F(RunFailure, OutputOfASuccessIsShownAsText) {
  call(run("a", "echo out; echo err >&2"));
  const std::string shown = call({"runs", "show", "--key", "a"}).out;
  EXPECT_THAT(shown, HasSubstr("\nstdout:\nout\n"));
  EXPECT_THAT(shown, HasSubstr("\nstderr:\nerr\n"));
  EXPECT_THAT(shown, HasSubstr("effect key   "));
  EXPECT_THAT(shown, testing::ContainsRegex("replayed until [-0-9]+ [0-9:]+Z, then the same key runs again"));
}

TEST_F(RunFailure, DoubtShowsItsReasonAndCommands) {
  call(run("a", "kill -9 $$", {"--on-doubt", "hold"}));
  const std::string id = id_in(call({"runs", "list", "--json"}).out);
  const std::string shown = call({"runs", "show", id.substr(24)}).out;
  EXPECT_THAT(shown, HasSubstr("reason       killed by SIGKILL (9); its effect may have happened\n"));
  EXPECT_THAT(shown, HasSubstr("  latchkey runs resolve " + id + " --outcome rerun   (run it again)\n"));
}

TEST_F(RunFailure, PartOfAnIdNamesTheRun) {
  call(run("a", "true"));
  const std::string id = id_in(call({"runs", "list", "--json"}).out);
  for (const std::string& part : {id.substr(0, 13), id.substr(28)})
    EXPECT_THAT(call({"runs", "show", part}).out, HasSubstr(id)) << part;
  EXPECT_EQ(call({"runs", "show", "00000000"}).exit, 1);
  EXPECT_EQ(call({"runs", "show", "xyz"}).exit, 2);
  EXPECT_EQ(call({"runs", "show"}).exit, 2);
  call(run("b", "true"));
  EXPECT_THAT(call({"runs", "show", id.substr(0, 4)}).err, HasSubstr("several runs match"));
  EXPECT_EQ(call({"runs", "show", "--key", "none"}).exit, 1);
}

TEST_F(RunFailure, HintsNameTheDataFolder) {
  const std::string other = file("it's here");
  const Answer failed = call(run("a", "exit 3", {"--data-dir", other}));
  EXPECT_THAT(failed.err, HasSubstr(" --data-dir '" + file("it'\\''s here") + "')"));
  EXPECT_THAT(call(run("a", "exit 3")).err, Not(HasSubstr("--data-dir"))) << "the variable leads there";
}

TEST_F(RunFailure, SpansNameTheirFlagAndLimit) {
  const Answer refused = call(run("a", "true", {"--window", "100000d"}));
  EXPECT_EQ(refused.exit, 2);
  EXPECT_THAT(refused.err, HasSubstr("`--window` is 100000d; it must be 0s to 3653d"));
  EXPECT_EQ(call(run("a", "true", {"--window", "1y", "--lease", "1m30s"})).exit, 0);
}

// A folder that the user may not enter is not the folder of a server on PostgreSQL.
TEST_F(RunFailure, ClosedFolderIsReported) {
  ASSERT_EQ(call(run("a", "true")).exit, 0);
  std::filesystem::permissions(data_dir_, std::filesystem::perms::none);
  const bool is_root = ::geteuid() == 0;
  std::filesystem::permissions(folder_.path(), std::filesystem::perms(0755));
  const std::vector<Words> commands{run("a", "true"),
                                    {"runs", "list"},
                                    {"token", "list"},
                                    {"serve"},
                                    {"move", "--to", "postgres://none@127.0.0.1:1/none"}};
  for (Words words : commands) {
    words.insert(words.begin(), LATCHKEY_BINARY);
    if (is_root) words.insert(words.begin(), {"/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"});
    const auto refused = start_program(words);
    EXPECT_EQ(refused->finish(), 69) << words.back();
    EXPECT_THAT(refused->err,
                HasSubstr("STORE_UNAVAILABLE: cannot read " + data_dir_ + ": Permission denied (owned by "));
    EXPECT_THAT(refused->err, HasSubstr("use sudo, or --server and --token)"));
  }
  std::filesystem::permissions(data_dir_, std::filesystem::perms::owner_all);
}

TEST_F(RunFailure, ListsNeedNoWriteAccess) {
  ASSERT_EQ(call(run("a", "echo out; exit 3")).exit, 3);
  const std::string id = id_in(call({"runs", "list", "--json"}).out);
  using std::filesystem::perms;
  for (const auto& one : std::filesystem::directory_iterator(data_dir_))
    std::filesystem::permissions(one.path(), perms(0444));
  std::filesystem::permissions(data_dir_, perms(0555));
  std::filesystem::permissions(folder_.path(), perms(0755));
  const auto read_only = [&](Words words) {
    words.insert(words.begin(), LATCHKEY_BINARY);
    if (::geteuid() == 0)
      words.insert(words.begin(), {"/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"});
    const auto process = start_program(words);
    const int exit = process->finish();
    return Answer{exit, process->out, process->err};
  };
  const Answer list = read_only({"runs", "list"});
  EXPECT_EQ(list.exit, 0) << list.err;
  EXPECT_THAT(list.out, HasSubstr(id));
  EXPECT_THAT(read_only({"runs", "show", "--key", "a"}).out, HasSubstr("--- stdout\nout\n"));
  EXPECT_THAT(read_only({"dlq", "list"}).out, HasSubstr("exit status 3"));
  EXPECT_EQ(read_only({"runs", "cancel", id}).exit, 69);
  // A user that may not read the lock file cannot know whether a server writes meanwhile.
  if (::geteuid() == 0) {
    std::filesystem::permissions(data_dir_ + "/latchkey.db.lock", perms(0600));
    const Answer refused = read_only({"runs", "list"});
    EXPECT_EQ(refused.exit, 69);
    EXPECT_THAT(refused.err, HasSubstr("latchkey.db.lock: Permission denied"));
  }
  std::filesystem::permissions(data_dir_, perms::owner_all);
}

TEST_F(RunFailure, DamagedFileIsNamed) {
  ASSERT_EQ(call(run("a", "true")).exit, 0);
  std::ofstream(data_dir_ + "/latchkey.db", std::ios::binary) << std::string(8192, 'x');
  const Answer refused = call({"runs", "list"});
  EXPECT_EQ(refused.exit, 69);
  EXPECT_THAT(refused.err, HasSubstr("STORE_FORMAT: " + data_dir_ + "/latchkey.db is damaged"));
  EXPECT_THAT(refused.err, HasSubstr("restore a copy"));
}

TEST_F(RunFailure, VersionAndManPageAreComplete) {
  const Answer version = call({"version"});
  EXPECT_EQ(version.exit, 0);
  EXPECT_THAT(version.out, testing::StartsWith("latchkey "));
  EXPECT_EQ(call({"-v"}).out, version.out);
  const std::string page = call({"man"}).out;
  for (const char* section : {".SH ENVIRONMENT\n", ".SH EXIT STATUS\n", ".SH FILES\n"})
    EXPECT_THAT(page, HasSubstr(section));
  EXPECT_THAT(page, HasSubstr("LATCHKEY_DATA_DIR"));
  EXPECT_THAT(page, HasSubstr(".BI \"\\-\\-window \" SPAN\n"));
}

}  // namespace
}  // namespace latchkey
