// Timing of `latchkey run`: expired leases, retry delays, waiting for another owner, a signal during the claim.
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>
#include <thread>

#include "base/clock.hpp"
#include "cli/cli_fixture.hpp"

namespace latchkey {
namespace {

using namespace std::chrono_literals;

class RunLeases : public CliTest {
 protected:
  // With stderr in stdout, to be read line by line.
  std::unique_ptr<Process> start_with_merged_output(Words words) const {
    words.insert(words.begin(), {"/bin/sh", "-c", "exec \"$0\" \"$@\" 2>&1", LATCHKEY_BINARY});
    return start_program(std::move(words));
  }
  std::string member(const std::string& json, const std::string& name) const {
    const auto at = json.find("\"" + name + "\":\"") + name.size() + 4;
    return json.substr(at, json.find('"', at) - at);
  }
};

TEST_F(RunLeases, TenWaitingCallersPrintTheSame) {
  ASSERT_EQ(::mkfifo(file("gate").c_str(), 0600), 0);
  std::vector<std::unique_ptr<Process>> processes;
  for (int i = 0; i < 10; ++i)
    processes.push_back(start_with_merged_output(run("a", "echo started; cat " + file("gate"), {"--wait"})));
  // No caller has its output yet: the command ends when the gate is opened.
  int waiting = 0;
  for (const auto& process : processes) {
    const std::string line = process->read_line();
    waiting += line.starts_with("latchkey: waiting for run ");
    if (!line.starts_with("latchkey: ")) EXPECT_EQ(line, "started");
  }
  EXPECT_EQ(waiting, 9);
  std::ofstream(file("gate")) << "through\n";
  for (const auto& process : processes) {
    EXPECT_EQ(process->finish(), 0) << process->out;
    EXPECT_TRUE(process->out.ends_with("started\nthrough\n")) << process->out;
  }
}

TEST_F(RunLeases, KeyOfKilledOwnerIsBusyUntilLeaseEnd) {
  const auto owner = start(run("a", "echo $LATCHKEY_RUN; exec sleep 1000", {"--lease", "4s"}));
  const std::string id = owner->read_line();
  owner->signal(SIGKILL);
  EXPECT_EQ(owner->finish(), 137);
  const auto until = parse_rfc3339(member(call({"runs", "show", id, "--json"}).out, "lease_until"));
  ASSERT_TRUE(until);
  const Answer early = call(run("a", "echo stolen"));
  SystemClock clock;
  ASSERT_LT(clock.now(), *until) << "the machine is too slow for a call within the lease of 4 s";
  EXPECT_EQ(early.exit, 75);
  EXPECT_EQ(early.out, "");
  EXPECT_THAT(early.err, HasSubstr("ALREADY_RUNNING"));
  const Answer next = call(run("a", "date +%s%3N", {"--wait"}));
  EXPECT_EQ(next.exit, 0) << next.err;
  ASSERT_EQ(next.out.size(), 14u) << next.out;
  EXPECT_GE(from_ms(std::stoll(next.out)), *until) << "not before the lease expired";
}

TEST_F(RunLeases, RetryDelaysAreOneAndFiveSeconds) {
  const Answer tried = call(run("a", "date +%s%3N; exit 3", {"--retries", "2", "--quiet"}));
  EXPECT_EQ(tried.exit, 3);
  std::istringstream stamps(tried.out);
  std::int64_t first = 0, second = 0, third = 0;
  ASSERT_TRUE(stamps >> first >> second >> third) << tried.out;
  // Later by the time to settle, claim and start on a loaded machine, but never earlier.
  EXPECT_GE(second - first, 1000);
  EXPECT_LT(second - first, 4000);
  EXPECT_GE(third - second, 5000);
  EXPECT_LT(third - second, 9000);
}

// A signal's bit in a line of /proc/PID/status.
bool blocks_signal(pid_t pid, int signal) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string word; status >> word;)
    if (word == "SigBlk:" && status >> word) return std::stoull(word, nullptr, 16) >> (signal - 1) & 1;
  return false;
}

TEST_F(RunLeases, SignalDuringTheClaimStartsNoCommand) {
  ASSERT_EQ(call(run("other", ":")).exit, 0);
  for (const int signal : {SIGINT, SIGTERM}) {
    const std::string key = "k" + std::to_string(signal);
    const int lock = ::open((data_dir_ + "/latchkey.db.lock").c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_GE(lock, 0);
    ASSERT_EQ(::flock(lock, LOCK_EX), 0);
    const auto claiming = start(run(key, "echo ran >> " + file("log")));
    // From here on it handles signals itself; its claim waits for the store's lock, which this test has.
    while (!blocks_signal(claiming->pid(), signal)) std::this_thread::yield();
    claiming->signal(signal);
    ::close(lock);
    EXPECT_EQ(claiming->finish(), 128 + signal) << claiming->err;
    EXPECT_EQ(read("log"), "");
    const Answer next = call(run(key, "echo next"));
    EXPECT_EQ(next.exit, 0) << next.err;
    EXPECT_EQ(next.out, "next\n");
  }
  EXPECT_EQ(call({"dlq", "list"}).out, "no dead letters\n");
}

}  // namespace
}  // namespace latchkey
