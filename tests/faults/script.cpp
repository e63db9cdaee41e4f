#include "faults/script.hpp"

#include <sqlite3.h>

#include <set>

namespace latchkey {

using namespace std::chrono_literals;

Digest hash_of(const std::string& function, const std::string& key) {
  return thread_sha256().add_prefixed("default").add_prefixed(function).add_prefixed(key).finish();
}

void Script::run() {
  retry_then_complete();
  // Actions on dead letters block; with a writer thread on a dead disk they would not return.
  if (walk_.shape != Shape::threaded) dead_letter();
  jobs_in_a_chain();
  transactional_effect();
  many_keys();
  retried_by_an_operator();
  waits_of_a_new_generation();
  decided_after_the_lease();
  purge();
  check_all();
}

ClaimReply Script::claim(const std::string& key, std::uint64_t call, Guard guard) {
  ClaimRequest request{
      .function = "f", .key = key, .key_hash = hash_of("f", key), .guard = guard, .claim = call_id(call)};
  return walk_.ask<ClaimReply>([&](Store& store, Done<ClaimReply> done) { store.claim(request, std::move(done)); });
}

Won Script::win(const std::string& key, std::uint64_t call, Guard guard) {
  const ClaimReply reply = claim(key, call, guard);
  EXPECT_TRUE(std::holds_alternative<Won>(reply)) << key << " reply " << reply.index();
  const Won won = std::get<Won>(reply);
  EXPECT_GT(won.fence, last_fence_) << "fences rise";
  last_fence_ = won.fence;
  return won;
}

SettleReply Script::settle(const Won& won, Ending ending) {
  return walk_
      .ask<std::vector<SettleReply>>([&](Store& store, Done<std::vector<SettleReply>> done) {
        store.settle({{.id = won.run.id(), .fence = won.fence, .ending = ending}}, std::move(done));
      })
      .front();
}

Run Script::settled(const Won& won, Ending ending) {
  const SettleReply reply = settle(won, std::move(ending));
  EXPECT_TRUE(std::holds_alternative<Settled>(reply));
  const Run run = std::get<Settled>(reply).run;
  failures_ += run.status() == Status::failed;
  return run;
}

Won Script::take(const std::string& function) {
  for (int tries = 0; tries < 5; ++tries) {
    auto taken = walk_.ask<std::vector<Taken>>([&](Store& store, Done<std::vector<Taken>> done) {
      store.take({.functions = {function}, .limit = 1, .session = call_id(99)}, std::move(done));
    });
    if (!taken.empty()) return taken.front();
    walk_.clock.advance(2min);
    walk_.ask<Swept>([&](Store& store, Done<Swept> done) { store.sweep(100, std::move(done)); });
  }
  throw std::runtime_error("nothing to take");
}

RunId Script::enqueue(const EnqueueRequest& job) {
  const auto replies = walk_.ask<std::vector<EnqueueReply>>(
      [&](Store& store, Done<std::vector<EnqueueReply>> done) { store.enqueue({job}, std::move(done)); });
  return std::get<Enqueued>(replies.front()).run.id();
}

void Script::retry_then_complete() {
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

void Script::dead_letter() {
  const Won won = win("b", 3);
  const Run failed = settled(won, Fail{.message = "no such card", .retryable = false});
  EXPECT_EQ(failed.status(), Status::failed);
  const auto page = walk_.read([](Store& store) { return store.list_dead_letters({}); });
  ASSERT_EQ(page.entries.size(), 1u);
  EXPECT_EQ(page.entries[0].count, 1u) << "one failure, one member";
  const Uuid id = page.entries[0].id;
  for (int tries = 0; tries < 5; ++tries) {
    const auto read = walk_.store->acknowledge(std::nullopt, id, "pat");
    if (walk_.disk.is_dead()) walk_.crash();
    if (read && *read && (*read)->acknowledged_at) break;
    walk_.clock.advance(2s);
  }
  resolve(id, failed.id());
}

// Repeats the action until it gets a reply. The step and the outcome are stored together, once.
void Script::resolve(Uuid dead_letter, RunId run) {
  const DeadLetterActionRequest wish{.dead_letter = dead_letter, .move = ResolveCompleted{"by hand"}, .by = "pat"};
  for (int tries = 0; tries < 5; ++tries) {
    const auto moved = walk_.store->act_on_dead_letter(wish);
    if (walk_.disk.is_dead()) walk_.crash();
    if (moved && *moved) break;
    walk_.clock.advance(2s);
  }
  const auto members = walk_.read([&](Store& store) { return store.list_members(dead_letter, 10); });
  ASSERT_EQ(members.size(), 1u);
  EXPECT_EQ(members.front().steps.size(), 1u);
  const auto found = walk_.read([&](Store& store) { return store.find(std::nullopt, run); });
  ASSERT_TRUE(found);
  EXPECT_EQ(found->status(), Status::completed);
  done_["b"] = "by hand";
}

void Script::jobs_in_a_chain() {
  const auto job = [&](const std::string& key, std::vector<RunId> after) {
    return enqueue(
        {.function = "j", .key = key, .key_hash = hash_of("j", key), .guard = Guard::once, .after = std::move(after)});
  };
  const RunId first = job("first", {});
  const RunId second = job("second", {first});
  for (const RunId& expected : {first, second}) {
    const Won taken = take("j");
    EXPECT_EQ(taken.run.id(), expected);
    settled(taken, Complete{"job", {EnqueueRequest{.function = "k"}}});
  }
  follow_ups_ = 2;
  // Without a key: repeats of the call make one job.
  std::set<RunId> made;
  for (int i = 0; i < 2; ++i) made.insert(enqueue({.function = "s", .claim = call_id(50)}));
  EXPECT_EQ(made.size(), 1u);
  settled(take("s"), Complete{"", {}});
}

// An effect with the fault fails as a whole. It is retried under the next fence, and happens once.
void Script::transactional_effect() {
  const auto charge = [](sqlite3* handle) -> Ending {
    sqlite3_exec(handle, "CREATE TABLE IF NOT EXISTS charges (amount)", nullptr, nullptr, nullptr);
    if (sqlite3_exec(handle, "INSERT INTO charges VALUES (42)", nullptr, nullptr, nullptr) != SQLITE_OK)
      return Fail{.message = sqlite3_errmsg(handle)};
    return Complete{"charged", {}};
  };
  for (std::uint64_t tries = 0; tries < 3 && !done_.contains("paid"); ++tries) {
    const Won won = win("paid", 40 + tries);
    const auto reply = walk_.ask<SettleReply>([&](Store&, Done<SettleReply> done) {
      walk_.store->settle_with({.id = won.run.id(), .fence = won.fence}, charge, std::move(done));
    });
    ASSERT_TRUE(std::holds_alternative<Settled>(reply));
    if (std::get<Settled>(reply).run.as<Completed>()) done_["paid"] = "charged";
    walk_.clock.advance(30s);
  }
  EXPECT_TRUE(done_.contains("paid")) << "there is one fault, and the third attempt has failed, too";
}

void Script::many_keys() {
  for (int i = 0; i < 12; ++i) {
    const std::string key = "many:" + std::to_string(i);
    settled(win(key, 100 + static_cast<std::uint64_t>(i)), Complete{key, {}});
    done_[key] = key;
  }
  check_replays();
  walk_.close_and_open();
}

// An old failed run gets its key back from a newer run, which must survive a crash.
void Script::retried_by_an_operator() {
  const Won old = win("lock", 5, Guard::while_running);
  settled(old, Fail{.message = "no", .retryable = false});
  const Won newer = win("lock", 6, Guard::while_running);
  EXPECT_NE(newer.run.id(), old.run.id());
  settled(newer, Complete{"", {}});
  move(old.run.id(), RetryByHand{});
  const Won again = win("lock", 7, Guard::while_running);
  EXPECT_EQ(again.run.id(), old.run.id());
  EXPECT_EQ(again.run.generation, 2u);
  settled(again, Complete{"", {}});
}

Run Script::move(RunId id, Move wish) {
  const auto moved = walk_.ask<MoveReply>(
      [&](Store& store, Done<MoveReply> done) { store.move({.id = id, .move = wish}, std::move(done)); });
  EXPECT_TRUE(std::holds_alternative<Moved>(moved));
  return std::get<Moved>(moved).run;
}

// A run failed with its predecessor and is enqueued again after another one: the earlier predecessor has no effect.
void Script::waits_of_a_new_generation() {
  std::uint64_t calls = 60;
  const auto add = [&](const std::string& key, std::vector<RunId> after) {
    return enqueue({.function = "w",
                    .key = key,
                    .key_hash = hash_of("w", key),
                    .guard = Guard::once,
                    .after = std::move(after),
                    .on_failed = OnFailed::fail,
                    .claim = call_id(calls++)});
  };
  const RunId a = add("a", {}), b = add("b", {}), c = add("c", {});
  const RunId d = add("d", {a, b});
  move(a, CancelByHand{});
  failures_ += 1;  // d fails with its predecessor
  EXPECT_EQ(add("d", {c}), d);
  move(b, CancelByHand{});
  for (const RunId& expected : {c, d}) {
    const Won taken = take("w");
    EXPECT_EQ(taken.run.id(), expected);
    EXPECT_EQ(taken.run.generation, expected == d ? 2u : 1u);
    EXPECT_EQ(settled(taken, Complete{"", {}}).status(), Status::completed);
  }
}

// Without a sweep: the doubt and its resolution are one transaction.
void Script::decided_after_the_lease() {
  const ClaimRequest request{.function = "f",
                             .key = "held",
                             .key_hash = hash_of("f", "held"),
                             .on_doubt = OnDoubt::hold,
                             .claim = call_id(70)};
  const ClaimReply reply =
      walk_.ask<ClaimReply>([&](Store& store, Done<ClaimReply> done) { store.claim(request, std::move(done)); });
  ASSERT_TRUE(std::holds_alternative<Won>(reply));
  last_fence_ = std::get<Won>(reply).fence;
  walk_.clock.advance(2min);
  EXPECT_EQ(move(std::get<Won>(reply).run.id(), ResolveCompleted{"seen"}).status(), Status::completed);
  done_["held"] = "seen";
}

void Script::purge() {
  settled(win("short", 8), Complete{"x", {}});
  // The first slice stores its position; the second one ends the round.
  for (const std::uint32_t limit : {2u, 1000u})
    walk_.ask<Swept>([&](Store& store, Done<Swept> done) { store.purge({}, limit, std::move(done)); });
}

void Script::check_replays() {
  for (const auto& [key, result] : done_) {
    const ClaimReply reply = claim(key, 500);
    ASSERT_TRUE(std::holds_alternative<Replay>(reply)) << key << " was acknowledged and is lost: " << reply.index();
    EXPECT_EQ(std::get<Replay>(reply).run.as<Completed>()->result, result);
  }
}

void Script::check_all() {
  walk_.clock.advance(1s);
  check_replays();
  for (int i = 0; i < follow_ups_; ++i) settled(take("k"), Complete{"", {}});
  const auto more = walk_.ask<std::vector<Taken>>([&](Store& store, Done<std::vector<Taken>> done) {
    store.take({.functions = {"j", "k", "s", "w"}, .limit = 10, .session = call_id(98)}, std::move(done));
  });
  EXPECT_TRUE(more.empty()) << "a job or follow-up was made twice";
  check_file();
}

void Script::check_file() {
  walk_.close_and_open();
  walk_.store.reset();
  if (walk_.disk.is_dead()) walk_.disk.restart(Unsynced::written);
  walk_.disk.call_off();
  Database database("latchkey.db", walk_.disk.vfs(), Access::write);
  Statement integrity = database.prepare("PRAGMA integrity_check");
  ASSERT_TRUE(integrity.step());
  EXPECT_EQ(integrity.bytes(0), "ok");
  integrity.reset();
  const auto count = [&](const char* from) {
    Statement rows = database.prepare("SELECT count(*) FROM " + std::string(from));
    EXPECT_TRUE(rows.step());
    return rows.integer(0);
  };
  EXPECT_EQ(count("charges"), 1) << "the effect and its settlement are one transaction";
  EXPECT_EQ(count("lk_dead_letter_members"), failures_) << "one dead letter per failed generation";
  if (walk_.shape != Shape::wide) EXPECT_GT(count("lk_keys"), 4) << "pages were split";
  check_keys(database);
}

void Script::check_keys(Database& database) {
  Statement pages = database.prepare("SELECT entries FROM lk_keys ORDER BY first");
  Statement run = database.prepare("SELECT hash FROM lk_runs WHERE seq = ?1");
  std::string last;
  while (pages.step()) {
    for (std::string_view entries = pages.bytes(0); !entries.empty(); entries.remove_prefix(22)) {
      EXPECT_LT(last, entries.substr(0, 16)) << "in order, over all pages";
      last = entries.substr(0, 16);
      Seq seq = 0;
      for (int i = 16; i < 22; ++i) seq = seq << 8 | static_cast<unsigned char>(entries[static_cast<std::size_t>(i)]);
      const Rows rows(run.bind(1, seq));
      EXPECT_TRUE(run.step() && run.bytes(0).substr(0, 16) == entries.substr(0, 16)) << "every merged key has its run";
    }
  }
}

}  // namespace latchkey
