// The fault walk: one script of everything the store does, with a fault at the nth write, for every n until it no
// longer strikes; for each kind of fault, and for each thing that may be left of unsynced writes.
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>
#include <sqlite3.h>

#include <set>

#include "faults/walk.hpp"

namespace latchkey {
namespace {

using namespace std::chrono_literals;

ClaimId call_id(std::uint64_t number) { return make_uuid_v7(from_ms(1), number, number); }

Digest hash_of(const std::string& function, const std::string& key) {
  return thread_sha256().add_prefixed("default").add_prefixed(function).add_prefixed(key).finish();
}

class Script {
 public:
  explicit Script(Walk& walk) : walk_(walk) {}

  void run() {
    retry_then_complete();
    dead_letter();
    jobs_in_a_chain();
    transactional_effect();
    many_keys();
    reopened_by_hand();
    purge();
    check_all();
  }

 private:
  ClaimReply claim(const std::string& key, std::uint64_t call, Guard guard = Guard::once) {
    ClaimRequest request{
        .function = "f", .key = key, .key_hash = hash_of("f", key), .guard = guard, .claim = call_id(call)};
    return walk_.ask<ClaimReply>([&](Store& store, Done<ClaimReply> done) { store.claim(request, std::move(done)); });
  }

  Won win(const std::string& key, std::uint64_t call, Guard guard = Guard::once) {
    const ClaimReply reply = claim(key, call, guard);
    EXPECT_TRUE(std::holds_alternative<Won>(reply)) << key << " reply " << reply.index();
    const Won won = std::get<Won>(reply);
    EXPECT_GT(won.fence, last_fence_) << "fences rise";
    last_fence_ = won.fence;
    return won;
  }

  SettleReply settle(const Won& won, Ending ending) {
    return walk_
        .ask<std::vector<SettleReply>>([&](Store& store, Done<std::vector<SettleReply>> done) {
          store.settle({{.id = won.run.id(), .fence = won.fence, .ending = ending}}, std::move(done));
        })
        .front();
  }

  Run settled(const Won& won, Ending ending) {
    const SettleReply reply = settle(won, std::move(ending));
    EXPECT_TRUE(std::holds_alternative<Settled>(reply));
    return std::get<Settled>(reply).run;
  }

  void retry_then_complete() {
    const Won first = win("a", 1);
    walk_.ask<std::vector<ExtendReply>>([&](Store& store, Done<std::vector<ExtendReply>> done) {
      store.extend({{.id = first.run.id(), .fence = first.fence}}, std::move(done));
    });
    EXPECT_EQ(settled(first, Fail{.message = "down"}).status(), Status::queued);
    walk_.clock.advance(30s);
    const Won second = win("a", 2);
    EXPECT_EQ(second.run.id(), first.run.id());
    EXPECT_EQ(second.run.attempt, 2u);
    EXPECT_EQ(settled(second, Complete{"result of a", {}}).status(), Status::completed);
    EXPECT_EQ(std::get<Error>(settle(first, Complete{"stale", {}})).code, Code::LEASE_LOST);
    done_["a"] = "result of a";
  }

  void dead_letter() {
    const Won won = win("b", 3);
    const Run failed = settled(won, Fail{.message = "no such card", .retryable = false});
    EXPECT_EQ(failed.status(), Status::failed);
    const auto page = walk_.store->records().list_dead_letters({});
    ASSERT_TRUE(page && page->entries.size() == 1u);
    EXPECT_EQ(page->entries[0].count, 1u) << "one failure, one member";
    const Uuid id = page->entries[0].id;
    for (int tries = 0; tries < 5; ++tries) {
      const auto read = walk_.store->records().acknowledge(std::nullopt, id, "pat");
      if (walk_.disk.is_dead()) walk_.crash();
      if (read && *read && (*read)->acknowledged_at) break;
      walk_.clock.advance(2s);
    }
    resolve(id, failed.id());
  }

  // Asked again until it is answered: the step and the outcome are there together, once.
  void resolve(Uuid letter, RunId run) {
    const LetterMove wish{.letter = letter, .move = ResolveCompleted{"by hand"}, .by = "pat"};
    Result<std::vector<DeadLetterMember>> members;
    Result<std::optional<Run>> found;
    for (int tries = 0; tries < 5; ++tries) {
      const auto moved = walk_.store->records().move_dead_letter(wish);
      if (walk_.disk.is_dead()) walk_.crash();
      members = walk_.store->records().list_members(letter, 10);
      found = walk_.store->find(std::nullopt, run);
      if (moved && *moved && members && found) break;
      walk_.clock.advance(2s);
    }
    ASSERT_TRUE(members && members->size() == 1u);
    EXPECT_EQ(members->front().steps.size(), 1u);
    ASSERT_TRUE(found && *found);
    EXPECT_EQ((*found)->status(), Status::completed);
    done_["b"] = "by hand";
  }

  void jobs_in_a_chain() {
    const auto enqueue = [&](const std::string& key, std::vector<RunId> after) {
      EnqueueRequest job{
          .function = "j", .key = key, .key_hash = hash_of("j", key), .guard = Guard::once, .after = std::move(after)};
      const auto replies = walk_.ask<std::vector<EnqueueReply>>(
          [&](Store& store, Done<std::vector<EnqueueReply>> done) { store.enqueue({job}, std::move(done)); });
      return std::get<Enqueued>(replies.front()).run.id();
    };
    const RunId first = enqueue("first", {});
    const RunId second = enqueue("second", {first});
    for (const RunId& expected : {first, second}) {
      const Won taken = take("j");
      EXPECT_EQ(taken.run.id(), expected);
      settled(taken, Complete{"job", {EnqueueRequest{.function = "k"}}});
    }
    follow_ups_ = 2;
    // Without a key: asked again, whatever was lost, it is one job.
    const EnqueueRequest solo{.function = "s", .claim = call_id(50)};
    std::set<RunId> made;
    for (int i = 0; i < 2; ++i) {
      const auto replies = walk_.ask<std::vector<EnqueueReply>>(
          [&](Store& store, Done<std::vector<EnqueueReply>> done) { store.enqueue({solo}, std::move(done)); });
      made.insert(std::get<Enqueued>(replies.front()).run.id());
    }
    EXPECT_EQ(made.size(), 1u);
    settled(take("s"), Complete{"", {}});
  }

  // A reply that was lost leaves the job leased to nobody: its lease must end first.
  Won take(const std::string& function) {
    for (int tries = 0; tries < 5; ++tries) {
      auto taken = walk_.ask<std::vector<Taken>>([&](Store& store, Done<std::vector<Taken>> done) {
        store.take({.functions = {function}, .limit = 1, .session = call_id(99)}, std::move(done));
      });
      if (!taken.empty()) return taken.front();
      walk_.clock.advance(2min);
      walk_.ask<Swept>([&](Store& store, Done<Swept> done) { store.sweep(100, std::move(done)); });
    }
    ADD_FAILURE() << "nothing to take";
    std::abort();
  }

  void transactional_effect() {
    const Won won = win("paid", 4);
    const auto reply = walk_.ask<SettleReply>([&](Store&, Done<SettleReply> done) {
      walk_.store->settle_with(
          {.id = won.run.id(), .fence = won.fence},
          [](sqlite3* handle) -> Ending {
            sqlite3_exec(handle, "CREATE TABLE IF NOT EXISTS charges (amount)", nullptr, nullptr, nullptr);
            if (sqlite3_exec(handle, "INSERT INTO charges VALUES (42)", nullptr, nullptr, nullptr) != SQLITE_OK)
              return Fail{.message = sqlite3_errmsg(handle)};
            return Complete{"charged", {}};
          },
          std::move(done));
    });
    ASSERT_TRUE(std::holds_alternative<Settled>(reply));
    // An effect that hit the fault has failed as a whole; it is tried again under the next fence.
    if (std::get<Settled>(reply).run.as<Completed>()) {
      done_["paid"] = "charged";
    }
  }

  void many_keys() {
    for (int i = 0; i < 12; ++i) {
      const std::string key = "many:" + std::to_string(i);
      settled(win(key, 100 + static_cast<std::uint64_t>(i)), Complete{key, {}});
      done_[key] = key;
    }
    walk_.close_and_open();
  }

  // An old failed run gets its key back from a newer one; that must hold over a crash.
  void reopened_by_hand() {
    const Won old = win("lock", 5, Guard::while_running);
    settled(old, Fail{.message = "no", .retryable = false});
    const Won newer = win("lock", 6, Guard::while_running);
    EXPECT_NE(newer.run.id(), old.run.id());
    settled(newer, Complete{"", {}});
    const auto moved = walk_.ask<MoveReply>([&](Store& store, Done<MoveReply> done) {
      store.move({.id = old.run.id(), .move = RetryByHand{}}, std::move(done));
    });
    EXPECT_TRUE(std::holds_alternative<Moved>(moved));
    const Won again = win("lock", 7, Guard::while_running);
    EXPECT_EQ(again.run.id(), old.run.id());
    EXPECT_EQ(again.run.generation, 2u);
    settled(again, Complete{"", {}});
  }

  void purge() {
    const Won won = win("short", 8);
    settled(won, Complete{"x", {}});
    purged_ = won.run.id();
    walk_.ask<Swept>([&](Store& store, Done<Swept> done) { store.purge({}, 1000, std::move(done)); });
  }

  void check_all() {
    walk_.clock.advance(1s);
    for (const auto& [key, result] : done_) {
      const ClaimReply reply = claim(key, 500);
      ASSERT_TRUE(std::holds_alternative<Replay>(reply))
          << key << " was acknowledged and is not kept: " << reply.index();
      EXPECT_EQ(std::get<Replay>(reply).run.as<Completed>()->result, result);
    }
    for (int i = 0; i < follow_ups_; ++i) settled(take("k"), Complete{"", {}});
    const auto more = walk_.ask<std::vector<Taken>>([&](Store& store, Done<std::vector<Taken>> done) {
      store.take({.functions = {"j", "k", "s"}, .limit = 10, .session = call_id(98)}, std::move(done));
    });
    EXPECT_TRUE(more.empty()) << "a job or follow-up was made twice";
    check_file();
  }

  void check_file() {
    walk_.close_and_open();
    walk_.store.reset();
    if (walk_.disk.is_dead()) walk_.disk.restart(Unsynced::kept);
    Database database("latchkey.db", walk_.disk.vfs(), Access::write);
    Statement integrity = database.prepare("PRAGMA integrity_check");
    ASSERT_TRUE(integrity.step());
    EXPECT_EQ(integrity.bytes(0), "ok");
    integrity.reset();
    if (done_.contains("paid")) {
      Statement charges = database.prepare("SELECT count(*) FROM charges");
      ASSERT_TRUE(charges.step());
      EXPECT_EQ(charges.integer(0), 1) << "the effect and its settlement are one";
      charges.reset();
    }
    Statement members = database.prepare("SELECT count(*) FROM lk_dead_letter_members");
    ASSERT_TRUE(members.step());
    EXPECT_EQ(members.integer(0), 2) << "one dead letter per failed generation";
    Statement pages = database.prepare("SELECT entries FROM lk_keys");
    Statement run = database.prepare("SELECT hash FROM lk_runs WHERE seq = ?1");
    while (pages.step()) {
      for (std::string_view entries = pages.bytes(0); !entries.empty(); entries.remove_prefix(22)) {
        Seq seq = 0;
        for (int i = 16; i < 22; ++i) seq = seq << 8 | static_cast<unsigned char>(entries[static_cast<std::size_t>(i)]);
        const Rows rows(run.bind(1, seq));
        EXPECT_TRUE(run.step() && run.bytes(0).substr(0, 16) == entries.substr(0, 16))
            << "every merged key has its run";
      }
    }
  }

  Walk& walk_;
  Fence last_fence_{0};
  std::map<std::string, std::string> done_;
  std::optional<RunId> purged_;
  int follow_ups_ = 0;
};

struct Case {
  Fault fault;
  Unsynced unsynced;
  const char* name;
};

class FaultWalk : public testing::TestWithParam<Case> {};

// Sanitizers make it six times slower: there it takes every fifth write.
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr std::uint64_t kStride = 5;
#else
constexpr std::uint64_t kStride = 1;
#endif

TEST_P(FaultWalk, EveryWrite) {
  spdlog::set_level(spdlog::level::off);
  std::uint64_t n = 1;
  for (;; n += kStride) {
    Walk walk(GetParam().fault, n, GetParam().unsynced, n);
    Script script(walk);
    script.run();
    if (testing::Test::HasFailure()) FAIL() << "at write " << n;
    if (!walk.disk.has_struck()) break;
  }
  EXPECT_GT(n, 100u) << "the script writes";
  RecordProperty("writes", static_cast<int>(n));
}

INSTANTIATE_TEST_SUITE_P(Kinds, FaultWalk,
                         testing::Values(Case{Fault::fail_before, Unsynced::kept, "FailBefore"},
                                         Case{Fault::fail_after, Unsynced::kept, "FailAfter"},
                                         Case{Fault::full, Unsynced::kept, "Full"},
                                         Case{Fault::crash_before, Unsynced::lost, "CrashBeforeLost"},
                                         Case{Fault::crash_after, Unsynced::lost, "CrashAfterLost"},
                                         Case{Fault::crash_before, Unsynced::kept, "CrashBeforeKept"},
                                         Case{Fault::crash_after, Unsynced::kept, "CrashAfterKept"},
                                         Case{Fault::crash_before, Unsynced::some, "CrashBeforeSome"},
                                         Case{Fault::crash_after, Unsynced::some, "CrashAfterSome"}),
                         [](const auto& each) { return each.param.name; });

TEST(FullDisk, RefusesChangesAnswersReadsAndRecovers) {
  spdlog::set_level(spdlog::level::off);
  Walk walk(Fault::none, 1, Unsynced::kept, 7);
  const auto claim = [&](const std::string& key) {
    ClaimRequest request{.function = "f", .key = key, .key_hash = hash_of("f", key)};
    std::optional<Result<ClaimReply>> answer;
    walk.store->claim(request, [&](Result<ClaimReply> reply) { answer = std::move(reply); });
    walk.store->step();
    return std::move(answer.value());
  };
  const auto won = claim("done");
  ASSERT_TRUE(won);
  const Won& first = std::get<Won>(*won);
  walk.store->settle({{.id = first.run.id(), .fence = first.fence, .ending = Complete{"r", {}}}}, [](auto) {});
  walk.store->step();

  walk.disk.set_full(true);
  const auto refused = claim("new");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::STORE_FULL);
  const auto replay = claim("done");
  ASSERT_TRUE(replay) << "a repeat needs no room";
  EXPECT_TRUE(std::holds_alternative<Replay>(*replay));
  EXPECT_TRUE(walk.store->find(std::nullopt, first.run.id()).value().has_value());
  EXPECT_EQ(walk.store->list({}).value().runs.size(), 1u);

  walk.disk.set_full(false);
  EXPECT_FALSE(claim("new")) << "not within a second of the failure";
  walk.clock.advance(2s);
  const auto later = claim("new");
  ASSERT_TRUE(later);
  EXPECT_TRUE(std::holds_alternative<Won>(*later));
}

}  // namespace
}  // namespace latchkey
