// `latchkey run` without a server: the real binary. Tests wait on output, pipes and process ends.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "cli/cli_fixture.hpp"

namespace latchkey {
namespace {

class RunCommand : public CliTest {};

// Prints that it runs, then waits until its stdin is closed.
const std::string kUntilEndOfInput = "echo running; cat > /dev/null; echo done";

TEST_F(RunCommand, RunsOnceAndPrintsTheSameAgain) {
  const auto words = run("a", "echo out; echo err >&2; echo x >> " + file("log"));
  const Answer first = call(words);
  EXPECT_EQ(first.exit, 0);
  EXPECT_EQ(first.out, "out\n");
  EXPECT_EQ(first.err, "err\n");
  const Answer again = call(words);
  EXPECT_EQ(again.exit, 0);
  EXPECT_EQ(again.out, "out\n");
  EXPECT_THAT(again.err, HasSubstr("latchkey: done before: run "));
  EXPECT_TRUE(again.err.ends_with("err\n"));
  EXPECT_EQ(read("log"), "x\n");
}

TEST_F(RunCommand, WindowCanBeForever) {
  ASSERT_EQ(call(run("a", "echo out", {"--window", "forever"})).exit, 0);
  EXPECT_THAT(call({"runs", "list", "--json"}).out, HasSubstr(R"("window_ms":"forever")"));
  EXPECT_EQ(call(run("a", "echo other", {"--window", "forever", "--quiet"})).out, "out\n");
  EXPECT_EQ(call(run("b", "echo out", {"--window", "always"})).exit, 2);
}

// Only a server reaches the keys in PostgreSQL. A file would have none of them, so it must not be used instead.
TEST_F(RunCommand, PostgresqlInTheEnvironmentIsRefused) {
  environment_ = {"LATCHKEY_STORE=postgres://latchkey:Sesame@127.0.0.1/app"};
  for (const Words& words : {run("a", "echo ran"), Words{"runs", "list"}, Words{"dlq", "list"}}) {
    const Answer refused = call(words);
    EXPECT_EQ(refused.exit, 2) << words.front();
    EXPECT_EQ(refused.out, "");
    EXPECT_THAT(refused.err, HasSubstr("name it with --server URL"));
    EXPECT_THAT(refused.err, Not(HasSubstr("Sesame")));
  }
  EXPECT_FALSE(std::filesystem::exists(data_dir_));
  environment_ = {"LATCHKEY_STORE="};
  EXPECT_EQ(call(run("a", "echo ran")).out, "ran\n");
}

// The same variable selects a server's store.
TEST_F(RunCommand, FileInTheEnvironmentIsTheStore) {
  environment_ = {"LATCHKEY_STORE=sqlite:" + file("own.db")};
  EXPECT_EQ(call(run("a", "echo one")).out, "one\n");
  EXPECT_TRUE(std::filesystem::exists(file("own.db")));
  EXPECT_FALSE(std::filesystem::exists(file("data/latchkey.db")));
  EXPECT_THAT(call({"runs", "list"}).out, HasSubstr("completed"));
  const auto server = start({"serve", "--listen", "127.0.0.1:0"});
  EXPECT_THAT(server->read_line(), HasSubstr("http://"));
  EXPECT_EQ(call(run("a", "echo again")).out, "one\n") << "through the server that owns the store";
  EXPECT_EQ(call({"dlq", "list"}).exit, 0);
  environment_ = {"LATCHKEY_STORE=mysql://u:Sesame@h/d"};
  for (const Words& words : {run("a", "echo ran"), Words{"runs", "list"}, Words{"dlq", "list"}}) {
    const Answer refused = call(words);
    EXPECT_EQ(refused.exit, 2) << words.front();
    EXPECT_THAT(refused.err, HasSubstr("LATCHKEY_STORE: the store 'mysql:…'"));
    EXPECT_THAT(refused.err, Not(HasSubstr("Sesame")));
  }
}

TEST_F(RunCommand, QuietRepeatsPrintNothingElse) {
  call(run("a", "echo out; echo err >&2"));
  const Answer again = call(run("a", "", {"--quiet"}));
  EXPECT_EQ(again.out, "out\n");
  EXPECT_EQ(again.err, "err\n");
}

TEST_F(RunCommand, TenantsAndFunctionsHaveSeparateKeys) {
  EXPECT_EQ(call(run("a", "echo one")).out, "one\n");
  EXPECT_EQ(call(run("a", "echo two", {"--tenant", "acme"})).out, "two\n");
  EXPECT_EQ(call(run("a", "echo three", {"--function", "other"})).out, "three\n");
}

TEST_F(RunCommand, BinaryOutputIsReplayedByteForByte) {
  std::string bytes;
  for (int i = 0; i < 1024; ++i) bytes += static_cast<char>(i * 7);
  bytes += std::string("\0\r\n\xff\xfe\0", 6);
  std::ofstream(file("bytes"), std::ios::binary) << bytes;
  const auto words = run("a", "cat " + file("bytes") + "; cat " + file("bytes") + " >&2", {"--quiet"});
  const Answer first = call(words), again = call(words);
  EXPECT_EQ(first.out, bytes);
  EXPECT_EQ(first.err, bytes);
  EXPECT_EQ(again.out, bytes);
  EXPECT_EQ(again.err, bytes);
}

TEST_F(RunCommand, Last64KibOfOutputAreStored) {
  const auto words = run("a", "head -c 100000 /dev/zero | tr '\\0' a; echo end");
  const Answer first = call(words);
  EXPECT_EQ(first.out.size(), 100'004u);
  EXPECT_THAT(first.err, HasSubstr("only the last 65536 of 100004 bytes of stdout were stored"));
  const Answer again = call(words);
  EXPECT_EQ(again.out, first.out.substr(first.out.size() - 65'536));
  EXPECT_THAT(again.err, HasSubstr("only the last 65536 of 100004 bytes of stdout were stored"));
}

TEST_F(RunCommand, PassesMuchOutputThrough) {
  const Answer big = call(run("a", "head -c 20000000 /dev/zero", {"--quiet"}));
  EXPECT_EQ(big.exit, 0);
  EXPECT_EQ(big.out.size(), 20'000'000u);
}

TEST_F(RunCommand, PassesStdinThrough) {
  const auto process = start(run("a", "tr a-z A-Z"));
  process->write("hello\n");
  EXPECT_EQ(process->finish(), 0);
  EXPECT_EQ(process->out, "HELLO\n");
}

TEST_F(RunCommand, PassesArgumentsAsTheyAre) {
  const Answer odd =
      call({"run", "--key", "a", "--", "/usr/bin/printf", "<%s>", "", "--", "{}", "[a,b]", "--key", "$x"});
  EXPECT_EQ(odd.out, "<><--><{}><[a,b]><--key><$x>");
}

TEST_F(RunCommand, CommandGetsItsAttemptNumber) {
  const Answer answer =
      call(run("the key", "echo $LATCHKEY_KEY $LATCHKEY_ATTEMPT; test $LATCHKEY_RUN = $LATCHKEY_EFFECT_KEY"));
  EXPECT_EQ(answer.exit, 0);
  EXPECT_EQ(answer.out, "the key 1\n");
}

TEST_F(RunCommand, ExitStatusIsTheCommands) {
  EXPECT_EQ(call(run("a", "exit 3")).exit, 3);
  EXPECT_EQ(call(run("b", "kill -9 $$")).exit, 137);
  const Answer missing = call({"run", "--key", "c", "--", "/no/such/command"});
  EXPECT_EQ(missing.exit, 127);
  EXPECT_THAT(missing.err, HasSubstr("latchkey: /no/such/command: command not found\n"));
  EXPECT_EQ(missing.err.find("not found"), missing.err.rfind("not found")) << "printed once";
  EXPECT_EQ(call({"run", "--key", "d", "--", "no-such-command-anywhere"}).exit, 127);
  std::ofstream(file("plain")) << "x";
  EXPECT_EQ(call({"run", "--key", "e", "--", file("plain")}).exit, 126);
}

TEST_F(RunCommand, FailedKeyRunsAgainOnTheNextCall) {
  const auto words = run("a", "test -e " + file("ready") + " && echo ok");
  EXPECT_EQ(call(words).exit, 1);
  std::ofstream(file("ready")) << "x";
  const Answer again = call(words);
  EXPECT_EQ(again.exit, 0);
  EXPECT_EQ(again.out, "ok\n");
}

TEST_F(RunCommand, RetriesAfterAWait) {
  const Answer tried =
      call(run("a", "echo try $LATCHKEY_ATTEMPT; test $LATCHKEY_ATTEMPT = 2 || exit 3", {"--retries", "1"}));
  EXPECT_EQ(tried.exit, 0);
  EXPECT_EQ(tried.out, "try 1\ntry 2\n");
  EXPECT_THAT(tried.err, HasSubstr("attempt 1 of 2 failed: exit status 3; trying again in 1s"));
}

TEST_F(RunCommand, LaterCallUsesItsOwnRetries) {
  const std::string script = "test $LATCHKEY_ATTEMPT = 2 || exit 3; echo ok";
  EXPECT_EQ(call(run("a", script)).exit, 3);
  const Answer tried = call(run("a", script, {"--retries", "1"}));
  EXPECT_EQ(tried.exit, 0) << tried.err;
  EXPECT_EQ(tried.out, "ok\n");
}

TEST_F(RunCommand, ExhaustedRetriesLeaveADeadLetter) {
  const Answer tried = call(run("a", "echo why >&2; exit 3", {"--retries", "1"}));
  EXPECT_EQ(tried.exit, 3);
  EXPECT_THAT(tried.err, HasSubstr("dead letter "));
  const Answer letters = call({"dlq", "list", "--json"});
  EXPECT_THAT(letters.out, HasSubstr(R"("code":"MAX_RETRIES_EXCEEDED","reason":"exit status 3: why")"));
  EXPECT_THAT(call({"dlq", "list"}).out, HasSubstr("MAX_RETRIES_EXCEEDED"));
  EXPECT_THAT(call({"dlq", "list", "--function", "other"}).out, HasSubstr("no dead letters"));
  const std::string id = letters.out.substr(letters.out.find("\"id\":\"") + 6, 36);
  EXPECT_THAT(call({"dlq", "show", id}).out, HasSubstr("exit status 3: why"));
  EXPECT_THAT(call({"dlq", "acknowledge", id}).out, HasSubstr(" by tester"));
  EXPECT_EQ(call({"dlq", "list"}).out, "no dead letters\n");
  EXPECT_THAT(call({"dlq", "list", "--all"}).out, HasSubstr(id));
}

TEST_F(RunCommand, MissingProgramIsNotRetried) {
  const Answer missing = call({"run", "--key", "a", "--retries", "5", "--", "/no/such/command"});
  EXPECT_EQ(missing.exit, 127);
  EXPECT_THAT(call({"dlq", "list"}).out, HasSubstr("EXECUTION_ERROR"));
}

TEST_F(RunCommand, TenCallersAtOnceRunItOnce) {
  ASSERT_EQ(::mkfifo(file("gate").c_str(), 0600), 0);
  std::vector<std::unique_ptr<Process>> processes;
  for (int i = 0; i < 10; ++i)
    processes.push_back(start(run("a", "echo x >> " + file("log") + "; cat " + file("gate"))));
  std::vector<int> exits(10);
  std::vector<std::thread> threads;
  std::atomic<int> busy = 0;
  std::atomic<bool> opened = false;
  for (std::size_t i = 0; i < 10; ++i)
    threads.emplace_back([&, i] {
      exits[i] = processes[i]->finish();
      if (exits[i] == 75 && ++busy == 9) {
        std::ofstream(file("gate")) << "through\n";  // the tenth ends after all others were refused
        opened = true;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(opened);
  EXPECT_EQ(std::ranges::count(exits, 75), 9);
  EXPECT_EQ(std::ranges::count(exits, 0), 1);
  EXPECT_EQ(read("log"), "x\n");
  for (std::size_t i = 0; i < 10; ++i)
    if (exits[i] == 75) EXPECT_THAT(processes[i]->err, HasSubstr("latchkey: ALREADY_RUNNING: the key 'a' is leased"));
}

TEST_F(RunCommand, WaitingCallersRetryOneByOne) {
  const auto gate = [&](int at) { return file("gate" + std::to_string(at)); };
  for (int i = 0; i < 3; ++i) ASSERT_EQ(::mkfifo(gate(i).c_str(), 0600), 0);
  std::ofstream(file("log"));
  // The third attempt succeeds.
  const std::string script =
      "cd " + file("") + "; n=$(wc -l < log); cat gate$n; echo x >> log; test $n = 2 && echo good";
  std::vector<std::unique_ptr<Process>> processes;
  for (int i = 0; i < 5; ++i) processes.push_back(start(run("a", script, {"--wait"})));
  for (int i = 0; i < 3; ++i) std::ofstream(gate(i)) << "";
  std::vector<int> exits;
  for (const auto& process : processes) {
    exits.push_back(process->finish());
    EXPECT_EQ(process->out, exits.back() == 0 ? "good\n" : "");
  }
  EXPECT_EQ(std::ranges::count(exits, 1), 2) << "each failed attempt has its exit status";
  EXPECT_EQ(std::ranges::count(exits, 0), 3) << "the third attempt, and two callers that print its output";
  EXPECT_EQ(read("log"), "x\nx\nx\n");
}

TEST_F(RunCommand, WaitEndsAfterItsTime) {
  const auto owner = start(run("a", kUntilEndOfInput));
  ASSERT_EQ(owner->read_line(), "running");
  EXPECT_EQ(call(run("a", "echo", {"--wait-for", "300ms"})).exit, 75);
  EXPECT_EQ(owner->finish(), 0);
}

TEST_F(RunCommand, OtherKeysAreFreeWhileOneIsOwned) {
  const auto owner = start(run("a", kUntilEndOfInput));
  ASSERT_EQ(owner->read_line(), "running");
  for (const char* key : {"b", "c", "d"}) EXPECT_EQ(call(run(key, "echo hi")).exit, 0);
  EXPECT_EQ(call(run("a", "echo hi")).exit, 75);
  EXPECT_THAT(call({"runs", "list", "--status", "running"}).out, HasSubstr(" a "));
  EXPECT_EQ(owner->finish(), 0);
  EXPECT_EQ(call(run("a", "", {"--quiet"})).out, "running\ndone\n");
}

TEST_F(RunCommand, HeartbeatsExtendTheLease) {
  const auto owner = start(run("a", kUntilEndOfInput, {"--lease", "1s"}));
  ASSERT_EQ(owner->read_line(), "running");
  EXPECT_EQ(call(run("a", "echo stolen", {"--wait-for", "2500ms"})).exit, 75);
  EXPECT_EQ(owner->finish(), 0);
}

TEST_F(RunCommand, BackgroundProcessOutlivesASuccess) {
  const Answer done = call(run("a", "sleep 1000 > /dev/null 2>&1 < /dev/null & echo $!"));
  EXPECT_EQ(done.exit, 0);
  const pid_t daemon = std::stoi(done.out);
  const ExitWatch gone(daemon);
  EXPECT_FALSE(gone.has_ended());
  ::kill(daemon, SIGKILL);
  EXPECT_TRUE(gone.wait());
}

TEST_F(RunCommand, BackgroundProcessDiesWithAFailure) {
  const auto owner = start(run("a", "sleep 1000 > /dev/null 2>&1 & echo $!; read x; exit 1"));
  const ExitWatch gone(std::stoi(owner->read_line()));
  EXPECT_EQ(owner->finish(), 1);
  EXPECT_TRUE(gone.wait());
}

TEST_F(RunCommand, BackgroundProcessOnThePipesDoesNotBlock) {
  const auto owner = start(run("a", "sleep 1000 & echo $!"));
  const pid_t daemon = std::stoi(owner->read_line());
  EXPECT_EQ(owner->finish(), 0);
  ::kill(daemon, SIGKILL);
}

TEST_F(RunCommand, WhileRunningIsALock) {
  const Words lock{"--guard", "while-running"};
  const auto owner = start(run("a", kUntilEndOfInput, lock));
  ASSERT_EQ(owner->read_line(), "running");
  EXPECT_EQ(call(run("a", "echo two", lock)).exit, 75);
  EXPECT_EQ(owner->finish(), 0);
  EXPECT_EQ(call(run("a", "echo two", lock)).out, "two\n");
  EXPECT_EQ(call(run("a", "echo three", lock)).out, "three\n");
}

TEST_F(RunCommand, StrictRejectsAnotherCommandLine) {
  EXPECT_EQ(call(run("a", "echo one", {"--strict"})).exit, 0);
  const Answer other = call(run("a", "echo two", {"--strict"}));
  EXPECT_EQ(other.exit, 65);
  EXPECT_EQ(other.out, "");
  EXPECT_THAT(other.err, HasSubstr("latchkey: KEY_REUSED: "));
  EXPECT_EQ(call(run("a", "echo one", {"--strict"})).out, "one\n");
  EXPECT_EQ(call(run("a", "echo two")).out, "one\n");  // without --strict, command lines are not compared
}

TEST_F(RunCommand, KeyIsFreeAfterItsWindow) {
  EXPECT_EQ(call(run("a", "echo one", {"--window", "0s"})).out, "one\n");
  EXPECT_EQ(call(run("a", "echo two")).out, "two\n");
}

TEST_F(RunCommand, InvalidFlagsAreUsageErrors) {
  const auto refused = [&](Words words, const char* why) {
    const Answer answer = call(std::move(words));
    EXPECT_EQ(answer.exit, 2) << answer.err;
    EXPECT_EQ(answer.out, "");
    EXPECT_THAT(answer.err, HasSubstr("latchkey: "));
    EXPECT_THAT(answer.err, HasSubstr(why));
  };
  refused({"rnu"}, "there is no command `rnu`; did you mean `run`?");
  refused({"dlq", "lsit"}, "did you mean `list`?");
  refused({"run", "--kye", "a", "--", "true"}, "did you mean `--key`?");
  refused({"run", "--key", "a", "--leese", "1s", "--", "true"}, "did you mean `--lease`?");
  refused({"run", "--key", "a", "true"}, "put the command behind `--`");
  refused({"run", "--key", "a"}, "no command");
  refused({"run", "--", "true"}, "--key is required");
  refused({"run", "--key", "", "--", "true"}, "`--key` is empty");
  refused({"run", "--key", "a", "--lease", "1", "--", "true"}, "is not a duration");
  refused({"run", "--key", "a", "--lease", "10ms", "--", "true"}, "lease");
  refused({"run", "--key", "a", "--guard", "twice", "--", "true"}, "--guard");
  refused({"run", "--key", "a", "--tenant", "a b", "--", "true"}, "tenant");
  refused({"runs", "show", "7"}, "is not an id");
  refused({}, "subcommand");
}

TEST_F(RunCommand, UnusableDataDirectoryIsReported) {
  const Answer answer = call(run("a", "echo hi", {"--data-dir", "/dev/null/x"}));
  EXPECT_EQ(answer.exit, 69);
  EXPECT_EQ(answer.out, "");
  EXPECT_THAT(answer.err, HasSubstr("latchkey: STORE_UNAVAILABLE: cannot use the data directory /dev/null/x"));
  std::ofstream(file("not-a-store")) << std::string(4096, 'x');
  ASSERT_EQ(::mkdir(file("other").c_str(), 0700), 0);
  ASSERT_EQ(::rename(file("not-a-store").c_str(), file("other/latchkey.db").c_str()), 0);
  const Answer other = call(run("a", "echo hi", {"--data-dir", file("other")}));
  EXPECT_EQ(other.exit, 69);
  EXPECT_THAT(other.err, HasSubstr("latchkey: STORE_FORMAT: "));
}

TEST_F(RunCommand, UnreachableServerIsReported) {
  const Answer answer = call({"runs", "list", "--server", "http://127.0.0.1:1"});
  EXPECT_EQ(answer.exit, 69);
  EXPECT_THAT(answer.err, HasSubstr("SERVER_UNREACHABLE"));
  EXPECT_THAT(call({"token", "list"}).err, HasSubstr("start `latchkey serve`"));
}

TEST_F(RunCommand, RunsCanBeListedShownAndRetried) {
  call(run("done", "echo hi"));
  call(run("bad", "exit 3"));
  const std::string failed = call({"runs", "list", "--status", "failed", "--json"}).out;
  EXPECT_TRUE(failed.starts_with("{\"items\":[{\"id\":\""));
  EXPECT_TRUE(failed.ends_with("],\"next\":null}\n"));
  EXPECT_THAT(failed, Not(HasSubstr("\"key\":\"done\"")));
  const std::string id = failed.substr(failed.find("\"id\":\"") + 6, 36);
  EXPECT_THAT(call({"runs", "show", id}).out, HasSubstr("exit status 3"));
  EXPECT_THAT(call({"runs", "retry", id}).out, HasSubstr("status       queued"));
  EXPECT_EQ(call(run("bad", "echo good now")).out, "good now\n");
  EXPECT_EQ(call({"runs", "retry", id}).exit, 1);  // it is completed
  EXPECT_EQ(call({"runs", "show", "00000000-0000-7000-8000-000000000000"}).exit, 1);
  EXPECT_THAT(call({"runs", "list", "--key", "done"}).out, HasSubstr("completed"));
  EXPECT_EQ(call({"runs", "list", "--tenant", "other"}).out, "no runs\n");
}

TEST_F(RunCommand, OldRunsArePurgedByTheGivenRetention) {
  call(run("old", "echo old", {"--window", "0s"}));
  call(run("next", "echo next"));
  EXPECT_THAT(call({"runs", "list"}).out, HasSubstr(" old "));
  call(run("last", "echo last", {"--retention", "0s"}));
  const std::string left = call({"runs", "list"}).out;
  EXPECT_THAT(left, Not(HasSubstr(" old ")));
  EXPECT_THAT(left, HasSubstr(" last "));
}

TEST_F(RunCommand, HelpHasExamplesEverywhere) {
  for (const Words& words : std::vector<Words>{{},
                                               {"run"},
                                               {"runs"},
                                               {"runs", "list"},
                                               {"runs", "show"},
                                               {"runs", "resolve"},
                                               {"runs", "watch"},
                                               {"dlq", "retry"},
                                               {"dlq"},
                                               {"dlq", "list"},
                                               {"token", "create"},
                                               {"key", "lock"},
                                               {"completion"},
                                               {"man"}}) {
    Words with = words;
    with.push_back("--help");
    const Answer help = call(with);
    EXPECT_EQ(help.exit, 0);
    EXPECT_THAT(help.out, HasSubstr("Example")) << help.out;
  }
  EXPECT_THAT(call({"--version"}).out, HasSubstr("latchkey "));
  EXPECT_THAT(call({"man"}).out, HasSubstr(".SS \"latchkey run\""));
  for (const char* shell : {"bash", "zsh", "fish"})
    EXPECT_THAT(call({"completion", shell}).out, HasSubstr("wait-for")) << shell;
}

}  // namespace
}  // namespace latchkey
