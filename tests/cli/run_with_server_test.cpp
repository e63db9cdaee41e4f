// Commands beside a server that owns the store: they use the server, and continue when it starts or stops.
#include <signal.h>

#include "cli/cli_fixture.hpp"

namespace latchkey {
namespace {

class RunWithServer : public CliTest {
 protected:
  // Returns after the server has printed its address.
  std::unique_ptr<Process> serve() const {
    auto server = start({"serve", "--listen", "127.0.0.1:0"});
    server->read_line();
    return server;
  }
};

TEST_F(RunWithServer, RunsOnceThroughTheServerAndWithoutIt) {
  auto server = serve();
  EXPECT_EQ(call(run("a", "echo out; echo err >&2")).out, "out\n");
  const Answer again = call(run("a", "echo other", {"--quiet"}));
  EXPECT_EQ(again.exit, 0);
  EXPECT_EQ(again.out, "out\n");
  EXPECT_EQ(again.err, "err\n");
  EXPECT_EQ(call(run("b", "exit 3")).exit, 3);
  EXPECT_THAT(call({"dlq", "list"}).out, HasSubstr("MAX_RETRIES_EXCEEDED"));
  EXPECT_THAT(call({"runs", "list", "--status", "failed"}).out, HasSubstr("exit status 3"));
  server->signal(SIGTERM);
  EXPECT_EQ(server->finish(), 0);
  EXPECT_EQ(call(run("a", "echo other", {"--quiet"})).out, "out\n");
}

TEST_F(RunWithServer, OwnerContinuesBesideAServer) {
  const auto owner = start(run("a", "echo running; cat > /dev/null; echo done", {"--lease", "1s"}));
  ASSERT_EQ(owner->read_line(), "running");
  auto server = serve();
  EXPECT_EQ(call(run("a", "echo stolen", {"--wait-for", "2s"})).exit, 75);  // heartbeats now go to the server
  server->signal(SIGTERM);
  EXPECT_EQ(server->finish(), 0);
  EXPECT_EQ(call(run("a", "echo stolen", {"--wait-for", "2s"})).exit, 75);  // heartbeats go to the store again
  EXPECT_EQ(owner->finish(), 0);
  EXPECT_EQ(call(run("a", "", {"--quiet"})).out, "running\ndone\n");
}

TEST_F(RunWithServer, RefusalsOfTheServerAreReported) {
  auto server = serve();
  const auto owner = start(run("a", "echo $LATCHKEY_RUN; cat > /dev/null", {"--lease", "1s", "--strict"}));
  const std::string id = owner->read_line();
  EXPECT_EQ(call(run("a", "echo other")).exit, 75);
  EXPECT_EQ(call(run("a", "echo other", {"--strict"})).exit, 65);
  EXPECT_EQ(call({"runs", "cancel", id}).exit, 0);
  EXPECT_EQ(owner->read_line(), "");
  EXPECT_EQ(owner->finish(), 143);
  const auto retried = call(run("b", "test $LATCHKEY_ATTEMPT = 2", {"--retries", "1"}));
  EXPECT_EQ(retried.exit, 0) << retried.err;
}

TEST_F(RunWithServer, InterruptUnderHoldReportsDoubt) {
  auto server = serve();
  const auto owner = start(run("a", "echo running; exec sleep 1000", {"--on-doubt", "hold"}));
  ASSERT_EQ(owner->read_line(), "running");
  owner->signal(SIGINT);
  EXPECT_EQ(owner->finish(), 130);
  EXPECT_THAT(owner->err, HasSubstr("OUTCOME_UNKNOWN: interrupted; run "));
  EXPECT_THAT(owner->err, Not(HasSubstr("is released")));
  EXPECT_EQ(call(run("a", "echo again")).exit, 76);
}

TEST_F(RunWithServer, SignalInARetryDelayReleasesTheRun) {
  auto server = serve();
  const auto owner =
      start_program({"/bin/sh", "-c", "exec " LATCHKEY_BINARY " run --key a --retries 5 -- sh -c 'exit 3' 2>&1"});
  ASSERT_THAT(owner->read_line(), HasSubstr("trying again in 1s"));
  ASSERT_THAT(owner->read_line(), HasSubstr("trying again in 5s"));
  owner->signal(SIGINT);
  EXPECT_EQ(owner->finish(), 130);
  EXPECT_THAT(owner->out, HasSubstr("is released, the next call runs it again"));
  EXPECT_EQ(call(run("a", "echo attempt $LATCHKEY_ATTEMPT")).out, "attempt 3\n");
}

TEST_F(RunWithServer, TokensAreCreatedListedAndRevoked) {
  auto server = serve();
  const Answer made = call({"token", "create", "--name", "ci", "--role", "service", "--tenant", "acme", "--json"});
  ASSERT_EQ(made.exit, 0) << made.err;
  const auto member = [&](const std::string& name) {
    const auto at = made.out.find("\"" + name + "\":\"") + name.size() + 4;
    return made.out.substr(at, made.out.find('"', at) - at);
  };
  const Words with{"--token", member("token"), "--tenant", "acme"};
  EXPECT_EQ(call(run("a", "echo hi", with)).out, "hi\n");
  EXPECT_THAT(call({"token", "list"}).out, HasSubstr("ci"));
  EXPECT_EQ(call({"token", "revoke", member("id")}).exit, 0);
  EXPECT_EQ(call(run("b", "echo hi", with)).exit, 77);
}

}  // namespace
}  // namespace latchkey
