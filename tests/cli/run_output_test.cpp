// Output that cannot be written: full files, closed pipes, limits on the size of files.
#include <signal.h>

#include "cli/cli_fixture.hpp"
#include "support/raw_client.hpp"

namespace latchkey {
namespace {

class Output : public CliTest {
 protected:
  // sh -c SCRIPT with the binary as $0: for redirections.
  Answer shell(const std::string& script) const {
    const auto process = start_program({"/bin/bash", "-c", script, LATCHKEY_BINARY});
    const int exit = process->finish();
    return {exit, process->out, process->err};
  }
  std::unique_ptr<Process> serve() const {
    auto server = start({"serve", "--listen", "127.0.0.1:0"});
    server->read_line();
    return server;
  }
};

TEST_F(Output, UnwritableOutputIsReported) {
  const Answer lost = shell("\"$0\" run --key a -- echo out > /dev/full");
  EXPECT_EQ(lost.exit, 74);
  EXPECT_THAT(lost.err, HasSubstr("latchkey: OUTPUT_FAILED: it is done, but not all of its output could be written: "
                                  "No space left on device; the same call prints the stored output\n"));
  EXPECT_EQ(call(run("a", "echo other", {"--quiet"})).out, "out\n") << "the command ran once, and its output is stored";
  EXPECT_EQ(shell("\"$0\" run --key a -- echo out > /dev/full").exit, 74) << "also for a replay";
  EXPECT_EQ(shell("\"$0\" run --key b -- sh -c 'echo x; exit 3' > /dev/full").exit, 3)
      << "the command's exit status has priority";
  for (const char* words : {"runs list", "runs list --json", "dlq list", "--help", "completion bash", "man"}) {
    const Answer list = shell("\"$0\" " + std::string(words) + " > /dev/full");
    EXPECT_EQ(list.exit, 74) << words;
    EXPECT_EQ(list.err, "latchkey: OUTPUT_FAILED: stdout cannot be written\n") << words;
  }
}

TEST_F(Output, TokenThatCannotBePrintedIsRevoked) {
  const auto server = serve();
  for (const char* flag : {"", " --json"}) {
    const Answer lost =
        shell("\"$0\" token create --name ci --role viewer --tenant acme" + std::string(flag) + " > /dev/full");
    EXPECT_EQ(lost.exit, 74);
    EXPECT_THAT(lost.err, HasSubstr("could not be written; the token was revoked\n"));
    EXPECT_THAT(lost.err, Not(HasSubstr("store it safely")));
  }
  const std::string tokens = call({"token", "list", "--json"}).out;
  std::size_t made = 0, revoked = 0;
  for (std::size_t at = 0; (at = tokens.find("\"name\":\"ci\"", at)) != std::string::npos; ++at) ++made;
  for (std::size_t at = 0; (at = tokens.find("\"revoked_at\":\"", at)) != std::string::npos; ++at) ++revoked;
  EXPECT_EQ(made, 2u) << tokens;
  EXPECT_GE(revoked, 2u) << tokens;
}

TEST_F(Output, ServerDoesNotNeedStdout) {
  const auto server =
      start_program({"/bin/sh", "-c", "exec \"$0\" serve --listen 127.0.0.1:0 2>&1 > /dev/full", LATCHKEY_BINARY});
  std::string line = server->read_line();
  EXPECT_THAT(line, HasSubstr("serving on http://127.0.0.1:"));
  server->signal(SIGTERM);
  EXPECT_EQ(server->finish(), 0);
}

TEST_F(Output, ClosedStdoutEndsTheCommand) {
  const Answer piped = shell("\"$0\" run --key y -- yes | head -n 1; exit ${PIPESTATUS[0]}");
  EXPECT_EQ(piped.out, "y\n");
  EXPECT_EQ(piped.exit, 128 + SIGPIPE) << piped.err;
  EXPECT_THAT(call({"dlq", "list"}).out, HasSubstr("SIGPIPE"));
  // A command that ignores SIGPIPE completes.
  const Answer ignoring = shell("\"$0\" run --key z -- sh -c \"trap '' PIPE; yes 2> /dev/null; echo on > " +
                                file("on") + "\" | head -n 1; exit ${PIPESTATUS[0]}");
  EXPECT_EQ(ignoring.exit, 0) << ignoring.err;
  EXPECT_EQ(read("on"), "on\n");
  EXPECT_THAT(call(run("z", "echo other", {"--quiet"})).out, HasSubstr("y\ny\n")) << "its output up to then is stored";
}

TEST_F(Output, ClosedStderrEndsTheCommand) {
  const Answer piped =
      shell("{ \"$0\" run --key y -- sh -c 'yes >&2'; echo $? >&3; } 2>&1 3> " + file("exit") + " | head -n 1");
  EXPECT_EQ(piped.out, "y\n");
  EXPECT_EQ(read("exit"), "141\n");
}

TEST_F(Output, FileSizeLimitIsAFullDisk) {
  ASSERT_EQ(call(run("old", "echo out")).exit, 0);
  // In units of 1 KiB: less than the store needs.
  const Answer refused = shell("ulimit -f 4; exec \"$0\" run --key new -- echo ran");
  EXPECT_EQ(refused.exit, 69) << "not killed by SIGXFSZ: " << refused.err;
  EXPECT_THAT(refused.err, HasSubstr("latchkey: STORE_FULL: "));
  EXPECT_EQ(refused.out, "");
  EXPECT_EQ(call(run("new", "echo ran")).out, "ran\n");
}

TEST_F(Output, FileSizeLimitOfAServerIsAFullDisk) {
  const auto server =
      start_program({"/bin/bash", "-c", "ulimit -f 600; exec \"$0\" serve --listen 127.0.0.1:0", LATCHKEY_BINARY});
  const std::string line = server->read_line();
  const auto port = static_cast<std::uint16_t>(std::stoi(line.substr(line.rfind(':') + 1)));
  ASSERT_EQ(call(run("old", "echo out")).exit, 0);
  std::string token = read("data/admin.key");
  token.pop_back();
  const auto claim = [&](int number) {
    const std::string body =
        R"({"function":"f","key":"n)" + std::to_string(number) + R"(","input":")" + std::string(20'000, 'x') + "\"}";
    latchkey::testing::RawClient client(port);
    client.send("POST /v1/runs HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nAuthorization: Bearer " +
                token + "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
    return client.read_response();
  };
  std::string answer;
  for (int i = 0; i < 200 && answer.find("503 ") == std::string::npos; ++i) answer = claim(i);
  EXPECT_THAT(answer, HasSubstr("STORE_FULL")) << "not killed by SIGXFSZ";
  EXPECT_EQ(call(run("old", "echo other", {"--quiet"})).out, "out\n") << "the server still replies";
  server->signal(SIGTERM);
  EXPECT_EQ(server->finish(), 0);
}

TEST_F(Output, CommandInheritsIgnoredSignals) {
  // Bits 13 and 25 of the ignored ones: SIGPIPE and SIGXFSZ.
  const auto ignored = [&](const std::string& key, const std::string& before) {
    const Answer shown = shell(before + "\"$0\" run --key " + key + " -- grep SigIgn /proc/self/status");
    return std::stoull(shown.out.substr(shown.out.find('\t')), nullptr, 16) & (1ULL << 12 | 1ULL << 24);
  };
  EXPECT_EQ(ignored("a", ""), 0u);
  EXPECT_EQ(ignored("b", "trap '' XFSZ; "), 1ULL << 24);
}

TEST_F(Output, CommandDoesNotGetTheToken) {
  environment_ = {"LATCHKEY_TOKEN=secret", "LATCHKEY_TENANT=acme"};
  const Answer shown = call(run("a", "echo ${LATCHKEY_TOKEN-none} $LATCHKEY_TENANT; env | grep -c secret"));
  EXPECT_EQ(shown.out, "none acme\n0\n");
}

}  // namespace
}  // namespace latchkey
