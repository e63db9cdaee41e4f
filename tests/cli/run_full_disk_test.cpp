// `latchkey run` on a full disk: the real binary on a small file system, or on one that says that it is full.
#include <signal.h>

#include "cli/cli_fixture.hpp"
#include "support/small_disk.hpp"

namespace latchkey {
namespace {

class RunOnFullDisk : public CliTest, public testing::WithParamInterface<DiskKind> {
 protected:
  RunOnFullDisk() {
    data_dir_ = disk_.file("data");
    environment_ = disk_.environment();
  }
  // With stderr in stdout, to be read as it comes.
  std::unique_ptr<Process> start_telling(Words words) const {
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

TEST_P(RunOnFullDisk, ANewKeyIsRefusedAtOnceAndAnOldOneReplayed) {
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
  EXPECT_EQ(call({"runs", "cancel", id_of("old")}).exit, 1) << "decided by reading";
  disk_.make_room();
  EXPECT_EQ(call(run("new", "echo ran")).out, "ran\n");
}

TEST_P(RunOnFullDisk, NoRoomForTheFirstKeyEver) {
  disk_.fill();
  const Answer refused = call(run("new", "echo ran"));
  EXPECT_EQ(refused.exit, 69);
  EXPECT_THAT(refused.err, HasSubstr("STORE_FULL"));
}

TEST_P(RunOnFullDisk, AServersFullDiskIsToldToo) {
  const auto server = start({"serve", "--listen", "127.0.0.1:0"});
  server->read_line();
  ASSERT_EQ(call(run("old", "echo out")).exit, 0);
  disk_.fill();
  Answer refused;
  // Blocks that the log has already are written until they are used up.
  for (int i = 0; i < 1000 && refused.exit != 69; ++i) refused = call(run("new" + std::to_string(i), ":"));
  EXPECT_EQ(refused.exit, 69);
  EXPECT_THAT(refused.err, HasSubstr("latchkey: STORE_FULL: "));
  EXPECT_EQ(call(run("old", "echo other", {"--quiet"})).out, "out\n");
  disk_.make_room();
  server->signal(SIGTERM);
  EXPECT_EQ(server->finish(), 0);
}

TEST_P(RunOnFullDisk, AnOutcomeThatCannotBeKeptIsToldAndKeptOnceThereIsRoom) {
  const auto holder = start_telling(run("a", "echo done; " + disk_.fill_command() + "; exit 0"));
  EXPECT_EQ(holder->read_line(), "done");
  EXPECT_THAT(holder->read_line(), HasSubstr("latchkey: STORE_FULL: the disk of "));
  EXPECT_THAT(holder->read_line(),
              testing::MatchesRegex("latchkey: the command succeeded, but its outcome is not stored yet; "
                                    "retrying until .*Z \\(10m\\); Ctrl-C ends the retries"));
  disk_.make_room();
  EXPECT_EQ(holder->finish(), 0);
  EXPECT_THAT(holder->out, HasSubstr("latchkey: stored after "));
  EXPECT_EQ(call(run("a", "", {"--quiet"})).out, "done\n");
}

TEST_P(RunOnFullDisk, GivingUpSaysWhatIsNotKept) {
  const auto holder = start_telling(run("a", "echo done; " + disk_.fill_command() + "; exit 0", {"--lease", "1s"}));
  for (int i = 0; i < 3; ++i) holder->read_line();
  holder->signal(SIGINT);
  EXPECT_EQ(holder->finish(), 130);
  EXPECT_THAT(holder->out, HasSubstr("latchkey: the command succeeded, but its outcome is NOT stored: run "));
  EXPECT_THAT(holder->out, HasSubstr("the next call runs the command again"));
  disk_.make_room();
  EXPECT_EQ(call(run("a", "echo again", {"--wait"})).out, "again\n");
}

TEST_P(RunOnFullDisk, GivingUpUnderHoldLeavesAPersonToDecide) {
  const auto holder =
      start_telling(run("a", "echo done; " + disk_.fill_command() + "; exit 3", {"--on-doubt", "hold"}));
  for (int i = 0; i < 3; ++i) holder->read_line();
  holder->signal(SIGTERM);
  EXPECT_EQ(holder->finish(), 143);
  EXPECT_THAT(holder->out,
              HasSubstr("latchkey: the command failed (exit status 3), but its outcome is NOT stored: run "));
  EXPECT_THAT(holder->out, HasSubstr("an operator decides (latchkey runs resolve "));
}

}  // namespace
}  // namespace latchkey
