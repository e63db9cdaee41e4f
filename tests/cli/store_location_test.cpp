// Where the command line finds its store, and its errors for wrong paths and arguments.
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "cli/cli_fixture.hpp"

namespace latchkey {
namespace {

class StoreLocation : public CliTest {
 protected:
  // Without the variables that name a store.
  Answer call_homeless(Words words) const {
    words.insert(words.begin(), {"/usr/bin/env", "-u", "HOME", "-u", "XDG_DATA_HOME", "-u", "LATCHKEY_DATA_DIR", "-C",
                                 folder_.path().string(), LATCHKEY_BINARY});
    const auto process = start_program(std::move(words));
    const int exit = process->finish();
    return {exit, process->out, process->err};
  }
};

TEST_F(StoreLocation, WithoutHomeItIsNeverTheCurrentFolder) {
  const passwd* const user = ::getpwuid(::getuid());
  const std::string home = user != nullptr ? user->pw_dir : "";
  const Answer help = call_homeless({"run", "--help"});
  EXPECT_THAT(help.out, Not(HasSubstr("=./")));
  if (home.starts_with('/')) EXPECT_THAT(help.out, HasSubstr("=" + home + "/.local/share/latchkey "));
  EXPECT_FALSE(std::filesystem::exists(file(".local")));
}

TEST_F(StoreLocation, MissingLocationIsReported) {
  const Words kNone{"--data-dir", ""};
  for (Words words : std::vector<Words>{{"runs", "list"}, {"token", "list"}, {"serve"}, {"run", "--key", "a"}}) {
    words.insert(words.end(), kNone.begin(), kNone.end());
    if (words.front() == "run") words.insert(words.end(), {"--", "true"});
    const Answer refused = call(words);
    EXPECT_EQ(refused.exit, 2) << words.front();
    EXPECT_THAT(refused.err, HasSubstr("--data-dir")) << words.front();
  }
}

TEST_F(StoreLocation, ReadingCommandsCreateNoStore) {
  for (const Words& words : std::vector<Words>{{"runs", "list"},
                                               {"dlq", "list"},
                                               {"runs", "show", "0198f0a1-7c2e-7000-8000-00005be78b16"},
                                               {"runs", "watch"}}) {
    const Answer nothing = call(words);
    EXPECT_EQ(nothing.exit, 1) << words[1];
    EXPECT_EQ(nothing.err, "latchkey: NOT_FOUND: there is no store at " + file("data/latchkey.db") + "\n") << words[1];
    EXPECT_FALSE(std::filesystem::exists(file("data"))) << words[1];
  }
}

TEST_F(StoreLocation, FolderAtTheStoresPathIsReported) {
  std::filesystem::create_directories(file("data/latchkey.db"));
  const Answer refused = call(run("a", "echo ran"));
  EXPECT_EQ(refused.exit, 69);
  EXPECT_EQ(refused.err, "latchkey: STORE_FORMAT: " + file("data/latchkey.db") + " is a folder, not a store\n");
}

TEST_F(StoreLocation, ServerUrlWithoutASchemeIsExplained) {
  const Answer refused = call({"runs", "list", "--server", "localhost:7420"});
  EXPECT_EQ(refused.exit, 2);
  EXPECT_THAT(refused.err, HasSubstr("did you mean http://localhost:7420?"));
}

TEST_F(StoreLocation, HelpIsACommand) {
  EXPECT_EQ(call({"help"}).out, call({"--help"}).out);
  EXPECT_EQ(call({"help", "runs", "list"}).out, call({"runs", "list", "--help"}).out);
  EXPECT_EQ(call({"help", "rums"}).exit, 2);
}

TEST_F(StoreLocation, BidiCharactersInKeysAreEscaped) {
  ASSERT_EQ(call(run("pay\u202e\u200bcod", "true")).exit, 0);
  const Answer list = call({"runs", "list"});
  EXPECT_THAT(list.out, HasSubstr("  pay\\u202e\\u200bcod  "));
  EXPECT_THAT(list.out, Not(HasSubstr("\u202e")));
  ASSERT_EQ(call(run("caf\u00e9 \u65e5\u672c", "true")).exit, 0);
  EXPECT_THAT(call({"runs", "list"}).out, HasSubstr("  caf\u00e9 \u65e5\u672c  "));
}

TEST_F(StoreLocation, CompletionKnowsTheValuesOfOptions) {
  const auto complete = [&](const std::string& words) {
    const auto process =
        start_program({"/bin/bash", "-c",
                       "source <(\"$0\" completion bash); COMP_WORDS=(" + words +
                           " ''); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _latchkey; echo ${COMPREPLY[@]}",
                       LATCHKEY_BINARY});
    process->finish();
    return process->out;
  };
  EXPECT_EQ(complete("latchkey run --guard"), "once while-running\n");
  EXPECT_EQ(complete("latchkey runs list --status"), "queued running in_doubt completed failed cancelled\n");
  EXPECT_THAT(complete("latchkey runs list"), HasSubstr("--status"));
  EXPECT_EQ(complete("latchkey runs"), "list show cancel retry resolve watch --help --help-all\n");
}

}  // namespace
}  // namespace latchkey
