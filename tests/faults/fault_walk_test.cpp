// The fault walk: one script with all operations of the store and a fault at the nth write, for every n up to the end
// of the script; for each kind of fault, and for each possible result of unsynced writes.
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "faults/script.hpp"
#include "support/test_length.hpp"

namespace latchkey {
namespace {

using namespace std::chrono_literals;

struct Case {
  Fault fault;
  Unsynced unsynced;
  const char* name;
};

constexpr std::array kCases{
    Case{Fault::fail_before, Unsynced::written, "FailBefore"},
    Case{Fault::fail_after, Unsynced::written, "FailAfter"},
    Case{Fault::fail_read, Unsynced::written, "FailRead"},
    Case{Fault::lose_sync, Unsynced::lost, "LoseSync"},
    Case{Fault::full, Unsynced::written, "Full"},
    Case{Fault::crash_before, Unsynced::lost, "CrashBeforeLost"},
    Case{Fault::crash_after, Unsynced::lost, "CrashAfterLost"},
    Case{Fault::crash_before, Unsynced::written, "CrashBeforeWritten"},
    Case{Fault::crash_after, Unsynced::written, "CrashAfterWritten"},
    Case{Fault::crash_before, Unsynced::some, "CrashBeforeSome"},
    Case{Fault::crash_after, Unsynced::some, "CrashAfterSome"},
};

class FaultWalk : public testing::TestWithParam<Case> {
 protected:
  static std::uint64_t case_index() {
    const auto same = [](const Case& each) { return std::string_view(each.name) == GetParam().name; };
    return static_cast<std::uint64_t>(std::ranges::find_if(kCases, same) - kCases.begin());
  }
  void walk(Shape shape, std::uint64_t stride) {
    spdlog::set_level(spdlog::level::off);
    // Each kind of fault starts at another write, so that in a sample the kinds together reach every write.
    std::uint64_t n = 1 + case_index() % stride;
    for (;; n += stride) {
      Walk walk(shape, GetParam().fault, n, GetParam().unsynced);
      Script script(walk);
      try {
        script.run();
      } catch (const std::exception& broken) {
        ADD_FAILURE() << broken.what();
      }
      if (HasFailure()) FAIL() << "at operation " << n;
      if (!walk.disk.has_struck()) break;
    }
    EXPECT_GT(n, 60u) << "the script writes, reads and syncs";
    RecordProperty("operations", static_cast<int>(n));
  }
};

TEST_P(FaultWalk, EveryWrite) { walk(Shape::tight, walk_stride()); }

TEST_P(FaultWalk, EveryFourthWriteOfAWideStore) { walk(Shape::wide, 4 * walk_stride()); }

// With threads, the nth write is not the same in every run.
TEST_P(FaultWalk, EverySeventhWriteWithThreads) { walk(Shape::threaded, 7 * walk_stride()); }

INSTANTIATE_TEST_SUITE_P(Kinds, FaultWalk, testing::ValuesIn(kCases),
                         [](const auto& each) { return each.param.name; });

TEST(FullDisk, RefusesChangesAnswersReadsAndRecovers) {
  spdlog::set_level(spdlog::level::off);
  Walk walk(Shape::wide, Fault::none, 7, Unsynced::written);
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
  EXPECT_FALSE(claim("new")) << "changes are refused for a second after the failure";
  walk.clock.advance(2s);
  const auto later = claim("new");
  ASSERT_TRUE(later);
  EXPECT_TRUE(std::holds_alternative<Won>(*later));
}

}  // namespace
}  // namespace latchkey
