// `latchkey run` on a full disk: the real binary on a small file system, or with a shim that simulates a full one.
#include <signal.h>

#include "cli/cli_fixture.hpp"
#include "support/small_disk.hpp"
#include "support/wait_until.hpp"

namespace latchkey {
namespace {

class RunOnFullDisk : public CliTest, public testing::WithParamInterface<DiskKind> {
 protected:
  RunOnFullDisk() {
    data_dir_ = disk_.file("data");
    environment_ = disk_.environment();
  }
  // With stderr in stdout, to be read line by line.
  std::unique_ptr<Process> start_with_merged_output(Words words) const {
    words.insert(words.begin(), {"/bin/sh", "-c", "exec \"$0\" \"$@\" 2>&1", LATCHKEY_BINARY});
    return start_program(std::move(words));
  }
  std::string id_of(const std::string& key) const {
    const std::string runs = call({"runs", "list", "--json", "--key", key}).out;
    return runs.substr(runs.find("\"id\":\"") + 6, 36);
  }

  SmallDisk disk_{file("disk"), GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Disks, RunOnFullDisk, testing::ValuesIn(SmallDisk::possible_kinds()),
                         [](const auto& each) { return each.param == DiskKind::mounted ? "Mounted" : "Pretended"; });

TEST_P(RunOnFullDisk, NewKeyIsRefusedAndOldKeyReplayed) {
  ASSERT_EQ(call(run("old", "echo out; echo err >&2")).exit, 0);
  disk_.fill();
  const Answer refused = call(run("new", "echo ran"));
  EXPECT_EQ(refused.exit, 69);
  EXPECT_EQ(refused.out, "");
  EXPECT_EQ(refused.err,
            "latchkey: STORE_FULL: the disk of " + disk_.file("data/latchkey.db") + " is full; nothing was changed\n");
  const Answer again = call(run("old", "echo other", {"--quiet"}));
  EXPECT_EQ(again.exit, 0);
  EXPECT_EQ(again.out, "out\n");
  EXPECT_EQ(again.err, "err\n");
  EXPECT_THAT(call({"runs", "list"}).out, HasSubstr(" old "));
  EXPECT_EQ(call({"runs", "cancel", id_of("old")}).exit, 1) << "the refusal needs no write";
  disk_.make_room();
  EXPECT_EQ(call(run("new", "echo ran")).out, "ran\n");
}

TEST_P(RunOnFullDisk, FirstKeyOfAStoreIsRefused) {
  disk_.fill();
  const Answer refused = call(run("new", "echo ran"));
  EXPECT_EQ(refused.exit, 69);
  EXPECT_THAT(refused.err, HasSubstr("STORE_FULL"));
}

TEST_P(RunOnFullDisk, FullDiskOfAServerIsReported) {
  const auto server = start({"serve", "--listen", "127.0.0.1:0"});
  server->read_line();
  ASSERT_EQ(call(run("old", "echo out")).exit, 0);
  disk_.fill();
  Answer refused;
  // Claims succeed until the log's existing blocks are used up.
  for (int i = 0; i < 1000 && refused.exit != 69; ++i) refused = call(run("new" + std::to_string(i), ":"));
  EXPECT_EQ(refused.exit, 69);
  EXPECT_THAT(refused.err, HasSubstr("latchkey: STORE_FULL: "));
  EXPECT_EQ(call(run("old", "echo other", {"--quiet"})).out, "out\n");
  disk_.make_room();
  server->signal(SIGTERM);
  EXPECT_EQ(server->finish(), 0);
}

TEST_P(RunOnFullDisk, ServerStartsReplaysAndRefusesWrites) {
  const auto serve = [this] { return start({"serve", "--listen", "127.0.0.1:0"}); };
  const auto url_of = [](const std::string& line) { return line.substr(line.find("http://")); };
  {
    const auto first = serve();
    first->read_line();
    ASSERT_EQ(call(run("old", "echo out")).exit, 0);
    first->signal(SIGTERM);
    ASSERT_EQ(first->finish(), 0);
  }
  disk_.fill();
  const auto server = serve();
  const std::string url = url_of(server->read_line());
  ASSERT_THAT(url, testing::StartsWith("http://127.0.0.1:")) << server->err;
  EXPECT_EQ(call(run("old", "echo other", {"--quiet", "--server", url})).out, "out\n");
  EXPECT_THAT(call({"runs", "list", "--server", url}).out, HasSubstr(" old "));
  Answer refused;
  // Claims succeed until the log's existing blocks are used up.
  for (int i = 0; i < 1000 && refused.exit != 69; ++i)
    refused = call(run("new" + std::to_string(i), ":", {"--server", url}));
  EXPECT_EQ(refused.exit, 69);
  EXPECT_THAT(refused.err, HasSubstr("latchkey: STORE_FULL: "));
  disk_.make_room();
  // The store tries again a second after the failure.
  EXPECT_TRUE(wait_until([&] { return call(run("later", "echo ran", {"--server", url})).out == "ran\n"; }));
  server->signal(SIGTERM);
  EXPECT_EQ(server->finish(), 0);
}

TEST_P(RunOnFullDisk, OutcomeIsStoredOnceThereIsRoom) {
  const auto owner = start_with_merged_output(run("a", "echo done; " + disk_.fill_command() + "; exit 0"));
  EXPECT_EQ(owner->read_line(), "done");
  EXPECT_THAT(owner->read_line(), HasSubstr("latchkey: STORE_FULL: the disk of "));
  EXPECT_THAT(owner->read_line(),
              testing::MatchesRegex("latchkey: the command succeeded, but its outcome is not stored yet; "
                                    "retrying until .*Z \\(10m\\); Ctrl-C ends the retries"));
  disk_.make_room();
  EXPECT_EQ(owner->finish(), 0);
  EXPECT_THAT(owner->out, HasSubstr("latchkey: stored after "));
  EXPECT_EQ(call(run("a", "", {"--quiet"})).out, "done\n");
}

TEST_P(RunOnFullDisk, InterruptReportsTheUnstoredOutcome) {
  const auto owner =
      start_with_merged_output(run("a", "echo done; " + disk_.fill_command() + "; exit 0", {"--lease", "1s"}));
  for (int i = 0; i < 3; ++i) owner->read_line();
  owner->signal(SIGINT);
  EXPECT_EQ(owner->finish(), 130);
  EXPECT_THAT(owner->out, HasSubstr("latchkey: the command succeeded, but its outcome is NOT stored: run "));
  EXPECT_THAT(owner->out, HasSubstr("the next call runs the command again"));
  disk_.make_room();
  EXPECT_EQ(call(run("a", "echo again", {"--wait"})).out, "again\n");
}

TEST_P(RunOnFullDisk, InterruptUnderHoldLeavesDoubt) {
  const auto owner =
      start_with_merged_output(run("a", "echo done; " + disk_.fill_command() + "; exit 3", {"--on-doubt", "hold"}));
  for (int i = 0; i < 3; ++i) owner->read_line();
  owner->signal(SIGTERM);
  EXPECT_EQ(owner->finish(), 143);
  EXPECT_THAT(owner->out,
              HasSubstr("latchkey: the command failed (exit status 3), but its outcome is NOT stored: run "));
  EXPECT_THAT(owner->out, HasSubstr("an operator decides (latchkey runs resolve "));
}

}  // namespace
}  // namespace latchkey
