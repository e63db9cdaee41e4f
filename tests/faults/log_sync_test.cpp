// Every acknowledged change is in a synced log: also after checkpoints, which disable SQLite's syncs for a moment, and
// also after checkpoints that fail.
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include "faults/script.hpp"

namespace latchkey {
namespace {

class LogSync : public testing::TestWithParam<Fault> {};

TEST_P(LogSync, LogIsSyncedAfterEveryCheckpoint) {
  spdlog::set_level(spdlog::level::off);
  bool struck = true;
  int copies = 0, checked = 0, answered_at_once = 0;
  for (std::uint64_t nth = 1; struck; ++nth) {
    Walk walk(Shape::wide, GetParam(), nth, Unsynced::written);
    for (std::uint64_t call = 1; call <= 30; ++call) {
      const bool before = walk.disk.has_struck();
      const Instant asked_at = walk.clock.now();
      const std::uint64_t syncs = walk.disk.syncs_of("latchkey.db-wal");
      const std::string key = "k" + std::to_string(call);
      walk.ask<ClaimReply>([&](Store& store, Done<ClaimReply> done) {
        store.claim({.function = "f", .key = key, .key_hash = hash_of("f", key), .claim = call_id(call)},
                    std::move(done));
      });
      copies += walk.disk.unsynced_writes("latchkey.db") > 0;
      if (walk.disk.has_struck() != before) {
        answered_at_once += walk.clock.now() == asked_at;
        continue;  // this reply may have come after the file was opened again
      }
      EXPECT_GT(walk.disk.syncs_of("latchkey.db-wal"), syncs) << "call " << call << ", fault at " << nth;
      checked += 1;
    }
    struck = walk.disk.has_struck();
    if (HasFailure()) return;
  }
  EXPECT_GT(copies, 100) << "pages were copied without a sync, as checkpoints do";
  EXPECT_GT(checked, 1000);
  EXPECT_GT(answered_at_once, 10) << "the fault was in a checkpoint, after the reply";
}

INSTANTIATE_TEST_SUITE_P(Kinds, LogSync, testing::Values(Fault::fail_before, Fault::fail_after, Fault::full),
                         [](const auto& each) {
                           return each.param == Fault::fail_before  ? "FailBefore"
                                  : each.param == Fault::fail_after ? "FailAfter"
                                                                    : "Full";
                         });

}  // namespace
}  // namespace latchkey
