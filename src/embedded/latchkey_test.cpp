#include <gtest/gtest.h>

#include <atomic>
#include <latchkey/latchkey.hpp>
#include <thread>

#include "support/folder.hpp"

namespace latchkey {
namespace {

class Library : public testing::Test {
 protected:
  Folder folder_;
  std::unique_ptr<Latchkey> keys_ = std::make_unique<Latchkey>(folder_.file("app.db"));
};

TEST_F(Library, RunsOnceAndReplaysAfterARestart) {
  int calls = 0;
  const auto effect = [&] { return "result " + std::to_string(++calls); };
  EXPECT_EQ(keys_->run({.function = "f", .key = "k"}, effect).how, How::ran);
  const Outcome repeat = keys_->run({.function = "f", .key = "k"}, effect);
  EXPECT_EQ(repeat.how, How::replayed);
  EXPECT_EQ(repeat.result, "result 1");
  keys_.reset();
  keys_ = std::make_unique<Latchkey>(folder_.file("app.db"));
  EXPECT_EQ(keys_->run({.function = "f", .key = "k"}, effect).result, "result 1");
  EXPECT_EQ(calls, 1);
}

TEST_F(Library, TwoThreadsRunItOnce) {
  std::atomic<int> calls{0};
  std::vector<std::thread> threads;
  std::atomic<int> done{0};
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      const Outcome outcome = keys_->run({.function = "f", .key = "k", .wait = true}, [&] {
        ++calls;
        return std::string("x");
      });
      done += outcome.is_done() && outcome.result == "x";
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(done, 8);
}

TEST_F(Library, ExceptionFailsTheAttempt) {
  const Outcome failed =
      keys_->run({.function = "f", .key = "k"}, []() -> std::string { throw std::runtime_error("no"); });
  EXPECT_EQ(failed.how, How::failed);
  EXPECT_EQ(failed.detail, "no");
  EXPECT_EQ(keys_->run({.function = "f", .key = "k"}, [] { return std::string("yes"); }).how, How::ran);
}

// covers: E8
TEST_F(Library, ATransactionCommitsWithItsOutcome) {
  const auto charge = [&](Transaction& tx) {
    tx.execute("CREATE TABLE IF NOT EXISTS charges (cents INTEGER)");
    tx.execute("INSERT INTO charges VALUES (?)", {std::int64_t{5}});
    return std::to_string(std::get<std::int64_t>(tx.query("SELECT count(*) FROM charges")[0][0]));
  };
  EXPECT_EQ(keys_->run_in_transaction({.function = "f", .key = "a"}, charge).result, "1");
  EXPECT_EQ(keys_->run_in_transaction({.function = "f", .key = "a"}, charge).how, How::replayed);
  EXPECT_EQ(keys_->run_in_transaction({.function = "f", .key = "b"}, charge).result, "2");
}

TEST_F(Library, ExceptionRollsBackOnlyItsTransaction) {
  keys_->run_in_transaction({.function = "f", .key = "a"}, [](Transaction& tx) {
    tx.execute("CREATE TABLE t (x)");
    return std::string();
  });
  const Outcome failed = keys_->run_in_transaction({.function = "f", .key = "b"}, [](Transaction& tx) -> std::string {
    tx.execute("INSERT INTO t VALUES (1)");
    throw std::runtime_error("changed my mind");
  });
  EXPECT_EQ(failed.how, How::failed);
  EXPECT_EQ(failed.detail, "changed my mind");
  const Outcome count = keys_->run_in_transaction({.function = "f", .key = "c"}, [](Transaction& tx) {
    return std::to_string(std::get<std::int64_t>(tx.query("SELECT count(*) FROM t")[0][0]));
  });
  EXPECT_EQ(count.result, "0");
}

TEST_F(Library, EffectCannotUseLatchkeysTables) {
  for (const char* sql :
       {"COMMIT", "ROLLBACK", "DELETE FROM lk_runs", "UPDATE lk_state SET fence = 0", "DROP TABLE lk_keys",
        "ALTER TABLE lk_runs RENAME TO mine", "CREATE TRIGGER t AFTER INSERT ON lk_runs BEGIN SELECT 1; END",
        "DROP INDEX lk_outcomes_unusual", "CREATE INDEX i ON LK_runs (id)", "RELEASE lk_user", "SELECT 1; SELECT 2",
        "PRAGMA synchronous = OFF", "ATTACH 'x.db' AS x"}) {
    const Outcome outcome = keys_->run_in_transaction({.function = "f", .key = sql}, [&](Transaction& tx) {
      tx.execute(sql);
      return std::string();
    });
    EXPECT_EQ(outcome.how, How::failed) << sql;
  }
}

TEST_F(Library, EffectThatEndsTheTransactionFailsAlone) {
  keys_->run_in_transaction({.function = "f", .key = "a"}, [](Transaction& tx) {
    tx.execute("CREATE TABLE t (x INTEGER PRIMARY KEY)");
    tx.execute("INSERT INTO t VALUES (1)");
    return std::string();
  });
  const Outcome outcome = keys_->run_in_transaction({.function = "f", .key = "b"}, [](Transaction& tx) {
    tx.execute("INSERT INTO t VALUES (2)");
    try {
      tx.execute("INSERT OR ROLLBACK INTO t VALUES (1)");
    } catch (const Failure&) {
    }
    try {
      tx.execute("INSERT INTO t VALUES (3)");
    } catch (const Failure&) {
    }
    return std::string();
  });
  EXPECT_EQ(outcome.how, How::failed);
  const Outcome count = keys_->run_in_transaction({.function = "f", .key = "c"}, [](Transaction& tx) {
    return std::to_string(std::get<std::int64_t>(tx.query("SELECT count(*) FROM t")[0][0]));
  });
  EXPECT_EQ(count.result, "1");
}

TEST_F(Library, EffectWithTooLargeResultIsNotRepeated) {
  int calls = 0;
  const auto effect = [&] {
    ++calls;
    return std::string((1 << 20) + 1, 'x');
  };
  const Outcome failed = keys_->run({.function = "f", .key = "a"}, effect);
  EXPECT_EQ(failed.how, How::failed);
  EXPECT_EQ(failed.detail, "the result has 1048577 bytes; at most 1048576 are stored");
  EXPECT_EQ(keys_->run({.function = "f", .key = "b", .hold_doubt = true}, effect).how, How::in_doubt);
  EXPECT_EQ(keys_->run({.function = "f", .key = "b", .hold_doubt = true}, effect).how, How::in_doubt);
  keys_->run({.function = "f", .key = "c", .retries = 3}, effect);
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(keys_->run({.function = "f", .key = "d"}, [] { return std::string(1 << 20, 'x'); }).how, How::ran);
}

TEST_F(Library, ALongExceptionIsRecordedToo) {
  const Outcome failed = keys_->run({.function = "f", .key = "k"},
                                    []() -> std::string { throw std::runtime_error(std::string(2 << 20, 'x')); });
  EXPECT_EQ(failed.how, How::failed);
  EXPECT_LE(failed.detail.size(), 64u << 10);
  EXPECT_TRUE(failed.detail.starts_with(std::string(65'000, 'x')));
  EXPECT_TRUE(failed.detail.ends_with(" more bytes were not stored)"));
}

TEST_F(Library, TooLargeResultRollsBackTheTransaction) {
  keys_->run_in_transaction({.function = "f", .key = "a"}, [](Transaction& tx) {
    tx.execute("CREATE TABLE t (x)");
    return std::string();
  });
  const Outcome failed = keys_->run_in_transaction({.function = "f", .key = "b", .retries = 3}, [](Transaction& tx) {
    tx.execute("INSERT INTO t VALUES (1)");
    return std::string((1 << 20) + 1, 'x');
  });
  EXPECT_EQ(failed.how, How::failed);
  EXPECT_EQ(failed.detail, "the result has 1048577 bytes; at most 1048576 are stored");
  const Outcome count = keys_->run_in_transaction({.function = "f", .key = "c"}, [](Transaction& tx) {
    return std::to_string(std::get<std::int64_t>(tx.query("SELECT count(*) FROM t")[0][0]));
  });
  EXPECT_EQ(count.result, "0");
}

TEST_F(Library, CallInsideATransactionIsRefused) {
  Latchkey other(folder_.file("other.db"));
  std::string codes;
  const auto call = [&](auto calls) {
    try {
      calls();
    } catch (const Failure& failure) {
      codes += failure.code() + " ";
    }
  };
  const Outcome outcome = keys_->run_in_transaction({.function = "f", .key = "a"}, [&](Transaction&) {
    call([&] { keys_->run({.function = "f", .key = "b"}, [] { return std::string(); }); });
    call([&] { keys_->run_in_transaction({.function = "f", .key = "b"}, [](Transaction&) { return std::string(); }); });
    return other.run({.function = "f", .key = "b"}, [] { return std::string("another file"); }).result;
  });
  EXPECT_EQ(codes, "INVALID_ARGUMENT INVALID_ARGUMENT ");
  EXPECT_EQ(outcome.result, "another file");
  EXPECT_EQ(keys_->run({.function = "f", .key = "b"}, [] { return std::string("after"); }).result, "after");
}

TEST_F(Library, InvalidRequestsThrowTheirError) {
  try {
    keys_->run({.function = "f", .key = std::string(600, 'k')}, [] { return std::string(); });
    FAIL();
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), "INVALID_ARGUMENT");
  }
  EXPECT_THROW(Latchkey("/nowhere/at/all.db"), Failure);
  const Outcome first = keys_->run({.function = "f", .key = "k", .fingerprint_of = "a"}, [] { return std::string(); });
  EXPECT_EQ(first.how, How::ran);
  EXPECT_EQ(keys_->run({.function = "f", .key = "k", .fingerprint_of = "b"}, [] { return std::string(); }).how,
            How::reused);
}

}  // namespace
}  // namespace latchkey
