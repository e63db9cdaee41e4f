// Early ends of `latchkey run`: signals, a real terminal, a killed owner, a lost lease, a cancel.
#include <signal.h>

#include "cli/cli_fixture.hpp"

namespace latchkey {
namespace {

class RunSignals : public CliTest {
 protected:
  // latchkey run with stderr in stdout, to be read line by line.
  std::unique_ptr<Process> start_with_merged_output(Words words) const {
    words.insert(words.begin(), {"/bin/sh", "-c", "exec \"$0\" \"$@\" 2>&1", LATCHKEY_BINARY});
    return start_program(std::move(words));
  }
};

// Prints that it runs, then waits until its stdin is closed.
const std::string kHold = "echo running; cat > /dev/null; echo done";

TEST_F(RunSignals, KillOfOwnerEndsItsProcesses) {
  // The command, a grandchild, and a process in a session of its own.
  const auto owner =
      start(run("a", "echo $$; sh -c 'echo $$; exec sleep 1000' & setsid sh -c 'echo $$; exec sleep 1000' & wait",
                {"--lease", "1s"}));
  std::vector<std::unique_ptr<ExitWatch>> family;
  for (int i = 0; i < 3; ++i) family.push_back(std::make_unique<ExitWatch>(std::stoi(owner->read_line())));
  owner->signal(SIGKILL);
  for (const auto& one : family) EXPECT_TRUE(one->wait());
  EXPECT_EQ(owner->finish(), 137);
  const Answer next = call(run("a", "echo second", {"--lease", "1s", "--wait"}));
  EXPECT_EQ(next.exit, 0);
  EXPECT_EQ(next.out, "second\n");
}

TEST_F(RunSignals, KilledOwnerUnderHoldLeavesDoubt) {
  const auto owner = start(run("a", kHold, {"--lease", "1s", "--on-doubt", "hold"}));
  ASSERT_EQ(owner->read_line(), "running");
  owner->signal(SIGKILL);
  owner->finish();
  const Answer next = call(run("a", "echo second", {"--wait"}));
  EXPECT_EQ(next.exit, 76);
  EXPECT_THAT(next.err, HasSubstr("OUTCOME_UNKNOWN"));
  const std::string runs = call({"runs", "list", "--json", "--status", "in_doubt"}).out;
  const std::string id = runs.substr(runs.find("\"id\":\"") + 6, 36);
  EXPECT_EQ(call({"runs", "cancel", id}).exit, 0);
  EXPECT_EQ(call(run("a", "echo second")).out, "second\n");
}

TEST_F(RunSignals, InterruptedCommandUnderHoldLeavesDoubt) {
  // The command does not end with its stdin, which finish() closes: it could complete before the signal reaches it.
  const auto owner = start(run("a", "echo running; exec sleep 1000", {"--on-doubt", "hold"}));
  ASSERT_EQ(owner->read_line(), "running");
  owner->signal(SIGTERM);
  EXPECT_EQ(owner->finish(), 143);
  EXPECT_THAT(owner->err, HasSubstr("OUTCOME_UNKNOWN: interrupted; run "));
  EXPECT_THAT(owner->err, Not(HasSubstr("is released")));
  EXPECT_THAT(call(run("a", "echo again")).err, HasSubstr("OUTCOME_UNKNOWN"));
  call(run("b", "kill -9 $$", {"--on-doubt", "hold"}));  // as the kernel does when memory runs out
  EXPECT_EQ(call(run("b", "echo again")).exit, 76);
}

TEST_F(RunSignals, OwnerPausedPastItsLeaseStopsItsCommand) {
  const auto owner = start(run("a", "echo $$; cat > /dev/null", {"--lease", "1s"}));
  const ExitWatch command(std::stoi(owner->read_line()));
  owner->signal(SIGSTOP);
  EXPECT_EQ(call(run("a", "echo second", {"--wait"})).out, "second\n");
  owner->signal(SIGCONT);
  EXPECT_TRUE(command.wait());
  EXPECT_EQ(owner->finish(), 75);
  EXPECT_THAT(owner->err, HasSubstr("LEASE_LOST"));
  EXPECT_EQ(call(run("a", "", {"--quiet"})).out, "second\n");
}

TEST_F(RunSignals, SignalIsForwardedOnceAndTheKeyIsFree) {
  for (const auto& [signal, name] :
       std::vector<std::pair<int, std::string>>{{SIGINT, "INT"}, {SIGTERM, "TERM"}, {SIGHUP, "HUP"}}) {
    const auto words = run(name, "trap 'echo got " + name + "; exit 9' " + name + "; echo running; read x");
    const auto owner = start(words);
    ASSERT_EQ(owner->read_line(), "running");
    owner->signal(signal);
    EXPECT_EQ(owner->read_line(), "got " + name);
    EXPECT_EQ(owner->finish(), 128 + signal);
    EXPECT_EQ(owner->out, "running\ngot " + name + "\n");
    const Answer next = call(run(name, "echo again"));
    EXPECT_EQ(next.exit, 0) << next.err;
    EXPECT_EQ(next.out, "again\n");
  }
  EXPECT_THAT(call({"dlq", "list"}).out, HasSubstr("OUTCOME_UNKNOWN"));
}

// Whether the first call had `hold` or not: its effect may have happened.
TEST_F(RunSignals, LaterHoldCountsAfterASignal) {
  EXPECT_EQ(call(run("a", "kill -9 $$")).exit, 137);
  for (const int signal : {SIGINT, SIGTERM}) {
    const std::string key = "k" + std::to_string(signal);
    const auto owner = start(run(key, "echo running; exec sleep 1000"));
    ASSERT_EQ(owner->read_line(), "running");
    owner->signal(signal);
    EXPECT_EQ(owner->finish(), 128 + signal);
  }
  for (const std::string key : {"a", "k2", "k15"}) {
    const Answer held = call(run(key, "echo again", {"--on-doubt", "hold"}));
    EXPECT_EQ(held.exit, 76) << key << held.out;
    EXPECT_EQ(held.out, "");
    EXPECT_THAT(held.err, ::testing::ContainsRegex("latchkey runs resolve [-0-9a-f]+ --outcome completed.failed.rerun"));
    if (key != "a") EXPECT_EQ(call(run(key, "echo again")).out, "again\n") << "without hold it runs again";
  }
  const std::string runs = call({"runs", "list", "--json", "--key", "a"}).out;
  EXPECT_EQ(call({"runs", "resolve", runs.substr(runs.find("\"id\":\"") + 6, 36), "--outcome", "rerun"}).exit, 0);
  EXPECT_EQ(call(run("a", "echo again", {"--on-doubt", "hold"})).out, "again\n");
}

TEST_F(RunSignals, InterruptedAttemptIsRetriedByTheNextCall) {
  const auto owner = start_with_merged_output(run("a", "echo running; exec sleep 1000", {"--retries", "2"}));
  ASSERT_EQ(owner->read_line(), "running");
  owner->signal(SIGTERM);
  EXPECT_EQ(owner->finish(), 143);
  EXPECT_THAT(owner->out, HasSubstr("is released, the next call runs it again"));
  EXPECT_THAT(owner->out, Not(HasSubstr("trying again")));
  EXPECT_EQ(call(run("a", "echo attempt $LATCHKEY_ATTEMPT")).out, "attempt 2\n");
}

TEST_F(RunSignals, CommandMayFinishAfterASignal) {
  const auto owner = start(run("a", "trap 'echo finishing; exit 0' TERM; echo running; read x"));
  ASSERT_EQ(owner->read_line(), "running");
  owner->signal(SIGTERM);
  EXPECT_EQ(owner->read_line(), "finishing");  // its stdin stays open until then
  EXPECT_EQ(owner->finish(), 0) << owner->err;
  EXPECT_EQ(call(run("a", "echo again", {"--quiet"})).out, "running\nfinishing\n");
}

TEST_F(RunSignals, CommandThatEndedBeforeASignalCompletes) {
  // More than one pipe holds, less than two: the command ends while latchkey waits for a reader of its output.
  const auto owner = start(run("a", "echo $$; read x; head -c 130000 /dev/zero"));
  const ExitWatch command(std::stoi(owner->read_line()));
  owner->write("\n");
  ASSERT_TRUE(command.wait());
  owner->signal(SIGINT);
  EXPECT_EQ(owner->finish(), 0) << owner->err;
  EXPECT_EQ(call(run("a", "echo again", {"--quiet"})).exit, 0);
  EXPECT_THAT(call({"runs", "list", "--status", "completed"}).out, HasSubstr("completed"));
}

TEST_F(RunSignals, SecondSignalKillsTheCommand) {
  const auto owner = start(run("a", "trap 'echo no' INT; echo running; while :; do read x || sleep 0.1; done"));
  ASSERT_EQ(owner->read_line(), "running");
  owner->signal(SIGINT);
  EXPECT_EQ(owner->read_line(), "no");
  owner->signal(SIGINT);
  EXPECT_EQ(owner->finish(), 130);
}

TEST_F(RunSignals, SignalEndsTheWait) {
  const auto owner = start(run("a", kHold));
  ASSERT_EQ(owner->read_line(), "running");
  const auto waiter = start(run("a", "echo never", {"--wait"}));
  // It waits after its claim was refused, which the store counts; an earlier signal ends it, too.
  waiter->signal(SIGTERM);
  EXPECT_EQ(waiter->finish(), 143);
  EXPECT_EQ(waiter->out, "");
  EXPECT_EQ(owner->finish(), 0);
}

TEST_F(RunSignals, CancelStopsTheCommand) {
  const auto owner = start(run("a", "echo $LATCHKEY_RUN; cat > /dev/null", {"--lease", "1s"}));
  const std::string id = owner->read_line();
  EXPECT_EQ(call({"runs", "cancel", id}).exit, 0);
  // Its stdin stays open: only the cancel can end it.
  EXPECT_THAT(owner->read_line(), "");
  EXPECT_EQ(owner->finish(), 143);
  EXPECT_THAT(call({"runs", "show", id}).out, HasSubstr("status       cancelled"));
  EXPECT_THAT(call({"runs", "show", id, "--json"}).out, HasSubstr("\"effect\":\"unknown\""));
}

TEST_F(RunSignals, CommandMayFinishAfterACancel) {
  const auto owner =
      start(run("a", "trap 'exit 0' TERM; echo $LATCHKEY_RUN; while :; do read x; done", {"--lease", "1s"}));
  const std::string id = owner->read_line();
  EXPECT_EQ(call({"runs", "cancel", id}).exit, 0);
  EXPECT_THAT(owner->read_line(), "");
  EXPECT_EQ(owner->finish(), 0) << owner->err;
  EXPECT_THAT(call({"runs", "show", id}).out, HasSubstr("status       completed"));
}

TEST_F(RunSignals, CtrlCReachesTheCommandOnce) {
  auto terminal =
      start_on_terminal(run("a", "trap 'echo got INT; exit 9' INT; echo running; while :; do sleep 0.02; done"));
  terminal.read_until("running\r\n");
  terminal.type("\x03");
  const std::string seen = terminal.read_until("the next call runs it again");
  EXPECT_THAT(seen, HasSubstr("got INT"));
  EXPECT_EQ(seen.find("got INT"), seen.rfind("got INT")) << "only the terminal sent it";
  EXPECT_EQ(terminal.finish(), 130);
  EXPECT_EQ(call(run("a", "echo again")).out, "again\n");
}

TEST_F(RunSignals, CtrlCEndsACommandWithoutAHandler) {
  auto terminal = start_on_terminal(run("a", "echo running; exec cat"));
  terminal.read_until("running\r\n");
  terminal.type("\x03");
  EXPECT_EQ(terminal.finish(), 130);
  EXPECT_EQ(call(run("a", "echo again")).out, "again\n");
}

TEST_F(RunSignals, HangupReachesTheCommand) {
  auto terminal =
      start_on_terminal(run("a", "trap 'echo got HUP >> " + file("log") +
                                     "; exit 9' HUP; echo running; while :; do read x || sleep 0.01; done"));
  terminal.read_until("running\r\n");
  terminal.hang_up();
  EXPECT_EQ(terminal.finish(), 129);
  EXPECT_EQ(read("log"), "got HUP\n");
  EXPECT_EQ(call(run("a", "echo again")).out, "again\n");
}

TEST_F(RunSignals, SignalInARetryDelayReleasesTheRun) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const std::string key = "k" + std::to_string(signal);
    const auto owner =
        start_with_merged_output(run(key, "echo $LATCHKEY_EFFECT_KEY > " + file(key) + "; exit 3", {"--retries", "5"}));
    ASSERT_THAT(owner->read_line(), HasSubstr("attempt 1 of 6 failed: exit status 3; trying again in 1s"));
    ASSERT_THAT(owner->read_line(), HasSubstr("attempt 2 of 6 failed: exit status 3; trying again in 5s"));
    owner->signal(signal);
    EXPECT_EQ(owner->finish(), 128 + signal);
    EXPECT_THAT(owner->out, HasSubstr("is released, the next call runs it again"));
    const Answer next = call(run(key, "echo attempt $LATCHKEY_ATTEMPT; echo $LATCHKEY_EFFECT_KEY"));
    EXPECT_EQ(next.exit, 0) << next.err;
    EXPECT_EQ(next.out, "attempt 3\n" + read(key)) << "the same effect key, as it is the same run";
  }
  EXPECT_EQ(call({"dlq", "list"}).out, "no dead letters\n");
}

TEST_F(RunSignals, CtrlCInARetryDelayOnATerminal) {
  auto terminal = start_on_terminal(run("a", "exit 3", {"--retries", "5"}));
  terminal.read_until("trying again in 5s");
  terminal.type("\x03");
  EXPECT_EQ(terminal.finish(), 130);
  EXPECT_EQ(call(run("a", "echo next")).out, "next\n");
}

TEST_F(RunSignals, TerminalShowsTheWaitingTime) {
  const auto owner = start(run("a", kHold));
  ASSERT_EQ(owner->read_line(), "running");
  auto terminal = start_on_terminal(run("a", "echo never", {"--wait"}));
  terminal.read_until("\r\x1b[Klatchkey: waiting for run ");
  EXPECT_THAT(terminal.read_until("s"), ::testing::MatchesRegex("[0-9a-f-]+, [1-9]s"));
  EXPECT_EQ(owner->finish(), 0);
  EXPECT_THAT(terminal.read_until("done before"), HasSubstr("\r\x1b[Klatchkey: done before"))
      << "overwrites the status line";
  EXPECT_EQ(terminal.finish(), 0);
  const auto again = start(run("b", kHold));
  ASSERT_EQ(again->read_line(), "running");
  const Answer elsewhere = call(run("b", "echo never", {"--wait-for", "1600ms"}));
  EXPECT_EQ(elsewhere.exit, 75);
  EXPECT_THAT(elsewhere.err, Not(HasSubstr("\r"))) << "no terminal";
}

}  // namespace
}  // namespace latchkey
