#include "engine/progress.hpp"

#include <gtest/gtest.h>

namespace latchkey {
namespace {

RunId id_of(std::uint64_t number) { return make_uuid_v7(from_ms(1), number, number); }

Run running(std::uint64_t number, Fence fence) {
  auto head = std::make_shared<RunHead>();
  head->id = id_of(number);
  Run run;
  run.head = std::move(head);
  run.fence = fence;
  run.state = Running{};
  return run;
}

TEST(Progress, ShowsLatestReportOfNewestOwner) {
  Progress progress(10);
  EXPECT_FALSE(progress.find(running(1, Fence{5})));
  progress.note(id_of(1), Fence{5}, "1");
  progress.note(id_of(1), Fence{5}, "2");
  EXPECT_EQ(progress.find(running(1, Fence{5})), "2");
  EXPECT_FALSE(progress.find(running(1, Fence{6}))) << "the new owner has not reported yet";
  progress.note(id_of(1), Fence{6}, "3");
  progress.note(id_of(1), Fence{5}, "late");
  EXPECT_EQ(progress.find(running(1, Fence{6})), "3");
  latchkey::Run done = running(1, Fence{6});
  done.state = Completed{};
  EXPECT_FALSE(progress.find(done));
  progress.forget(id_of(1));
  EXPECT_FALSE(progress.find(running(1, Fence{6})));
}

TEST(Progress, EvictsTheOldestReport) {
  Progress progress(2);
  progress.note(id_of(1), Fence{1}, "a");
  progress.note(id_of(2), Fence{2}, "b");
  progress.note(id_of(1), Fence{1}, "a2");
  progress.note(id_of(3), Fence{3}, "c");
  EXPECT_EQ(progress.find(running(1, Fence{1})), "a2");
  EXPECT_FALSE(progress.find(running(2, Fence{2})));
  EXPECT_EQ(progress.find(running(3, Fence{3})), "c");
}

}  // namespace
}  // namespace latchkey
