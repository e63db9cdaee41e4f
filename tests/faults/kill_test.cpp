// kill -9 of a real process on a real file, at 200 random moments: no acknowledged change is lost.
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <future>
#include <map>
#include <sstream>

#include "store/sqlite/sqlite_store.hpp"
#include "support/folder.hpp"
#include "support/test_length.hpp"

extern char** environ;

namespace latchkey {
namespace {


struct Said {
  std::map<std::string, std::uint64_t> won;
  std::map<std::string, char> settled;
  std::uint64_t fence_max = 0;
};

// Reads `lines` lines of the child's output, then kills the child and reads the rest.
std::string run_and_kill(const std::string& file, const std::string& prefix, std::size_t lines) {
  int out[2];
  if (::pipe(out) != 0) std::abort();
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  ::posix_spawn_file_actions_addclose(&actions, out[0]);
  std::string program = LATCHKEY_KILL_CHILD, path = file, name = prefix;
  char* argv[] = {program.data(), path.data(), name.data(), nullptr};
  pid_t child = 0;
  EXPECT_EQ(::posix_spawn(&child, program.c_str(), &actions, nullptr, argv, environ), 0);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(out[1]);
  std::string said;
  char buffer[4096];
  bool killed = false;
  for (ssize_t size; (size = ::read(out[0], buffer, sizeof buffer)) > 0;) {
    said.append(buffer, static_cast<std::size_t>(size));
    if (!killed && static_cast<std::size_t>(std::ranges::count(said, '\n')) >= lines) {
      ::kill(child, SIGKILL);
      killed = true;
    }
  }
  ::close(out[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status)) << "the child ended by itself: " << status;
  return said;
}

void note(const std::string& text, Said& said) {
  std::istringstream lines(text.substr(0, text.rfind('\n') + 1));
  char kind = 0;
  std::string key;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    words >> kind >> key;
    if (kind == 'W') {
      std::uint64_t fence = 0;
      words >> fence;
      said.won[key] = fence;
      said.fence_max = std::max(said.fence_max, fence);
    } else if (kind != 'R') {
      said.settled[key] = kind;
    }
  }
}

ClaimReply claim(SqliteStore& store, const std::string& key) {
  ClaimRequest request;
  request.function = "f";
  request.key = key;
  request.key_hash = thread_sha256().add_prefixed("default").add_prefixed("f").add_prefixed(key).finish();
  std::promise<Result<ClaimReply>> promise;
  store.claim(std::move(request), [&](Result<ClaimReply> reply) { promise.set_value(std::move(reply)); });
  return promise.get_future().get().value();
}

// Claims every settled key again, like a caller: through the key window, the filter and the merged pages.
void expect_replays(const std::string& file, const Said& said, Clock& clock, Random& random) {
  auto opened = SqliteStore::open({.file = file}, clock, random);
  ASSERT_TRUE(opened) << to_string(opened.error());
  // Each new key is a commit, and each commit scans a part of the keys for the filter.
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(std::holds_alternative<Won>(claim(**opened, "new-" + std::to_string(i))));
  std::size_t completed = 0;
  for (const auto& [key, kind] : said.settled) {
    if (kind == 'F') continue;
    const ClaimReply reply = claim(**opened, key);
    const auto* replay = std::get_if<Replay>(&reply);
    ASSERT_TRUE(replay) << key << " would run again";
    EXPECT_EQ(replay->run.as<Completed>()->result, "result of " + key);
    ++completed;
  }
  EXPECT_GT(completed, repetitions(200));
}

TEST(Kill, NoAcknowledgedChangeIsLost) {
  const Folder folder;
  const std::string file = folder.file("latchkey.db");
  SystemClock clock;
  SeededRandom random(2026);
  Said said;
  const std::uint64_t kills = repetitions(200);
  for (std::uint64_t round = 0; round < kills; ++round) {
    const std::uint64_t before = said.fence_max;
    Said now;
    note(run_and_kill(file, "r" + std::to_string(round), 1 + random.below(200)), now);
    for (const auto& [key, fence] : now.won) EXPECT_GT(fence, before) << "fences rise after a crash";
    auto opened = SqliteStore::open({.file = file}, clock, random);
    ASSERT_TRUE(opened) << to_string(opened.error());
    SqliteStore& store = **opened;
    for (const auto& [key, fence] : now.won) {
      const Digest hash = thread_sha256().add_prefixed("default").add_prefixed("f").add_prefixed(key).finish();
      const auto run = store.find_latest({"default", "f", key, hash}).value();
      ASSERT_TRUE(run) << key << " was won and is gone, round " << round;
      EXPECT_EQ(static_cast<std::uint64_t>(run->fence), fence);
      const auto settled = now.settled.find(key);
      if (settled == now.settled.end()) continue;
      if (settled->second == 'F') {
        EXPECT_TRUE(run->as<Failed>()) << key;
      } else {
        ASSERT_TRUE(run->as<Completed>()) << key << " was settled and is not, round " << round;
        EXPECT_EQ(run->as<Completed>()->result, "result of " + key);
      }
    }
    said.fence_max = std::max(before, now.fence_max);
    said.settled.insert(now.settled.begin(), now.settled.end());
    // In every second round, the next process opens the file without a merge.
    if (round % 2 == 0) store.abandon();
  }
  expect_replays(file, said, clock, random);
}

}  // namespace
}  // namespace latchkey
