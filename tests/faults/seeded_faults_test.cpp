// A test of the fault walk: each seeded bug of the SQLite store must make it fail.
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include "base/seeded_bug.hpp"
#include "faults/script.hpp"

namespace latchkey {
namespace {

struct Bug {
  SeededBug which;
  const char* name;
};
constexpr Bug kBugs[] = {
#define LK_BUG(name) {SeededBug::name, #name},
    LK_SEEDED_SQLITE_BUGS(LK_BUG)
#undef LK_BUG
};

struct Kind {
  Fault fault;
  Unsynced unsynced;
  const char* name;
};
constexpr Kind kKinds[] = {{Fault::full, Unsynced::written, "full"},
                           {Fault::fail_after, Unsynced::written, "fail after"},
                           {Fault::fail_before, Unsynced::written, "fail before"},
                           {Fault::crash_before, Unsynced::lost, "crash before, lost"},
                           {Fault::crash_after, Unsynced::written, "crash after, written"},
                           {Fault::crash_before, Unsynced::some, "crash before, some lost"},
                           {Fault::lose_sync, Unsynced::lost, "lose sync"},
                           {Fault::fail_read, Unsynced::written, "fail read"}};

struct Walked {
  bool struck = false;
  std::string wrong;  // the first failure, or empty
};

Walked walk(Kind kind, std::uint64_t nth) {
  Walked walked;
  testing::TestPartResultArray results;
  {
    const testing::ScopedFakeTestPartResultReporter reporter(
        testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &results);
    try {
      Walk walk(Shape::tight, kind.fault, nth, kind.unsynced);
      Script(walk).run();
      walked.struck = walk.disk.has_struck();
    } catch (const std::exception& broken) {
      walked.wrong = broken.what();
    }
  }
  if (results.size() > 0) walked.wrong = results.GetTestPartResult(0).summary();
  return walked;
}

class SeededFaults : public testing::TestWithParam<Bug> {
 protected:
  SeededFaults() { spdlog::set_level(spdlog::level::off); }
  ~SeededFaults() override { seeded_bug = SeededBug::none; }
};

TEST_P(SeededFaults, IsCaught) {
  seeded_bug = GetParam().which;
  std::vector<Kind> kinds(std::begin(kKinds), std::end(kKinds));
  for (std::uint64_t nth = 1; !kinds.empty(); ++nth) {
    std::vector<Kind> left;
    for (const Kind kind : kinds) {
      const Walked walked = walk(kind, nth);
      if (walked.struck) left.push_back(kind);
      if (walked.wrong.empty()) continue;
      std::printf("%s: caught by %s at operation %llu: %s\n", GetParam().name, kind.name,
                  static_cast<unsigned long long>(nth), walked.wrong.c_str());
      return;
    }
    kinds = std::move(left);
  }
  ADD_FAILURE() << GetParam().name << " was not caught";
}

INSTANTIATE_TEST_SUITE_P(Each, SeededFaults, testing::ValuesIn(kBugs),
                         [](const auto& at) { return std::string(at.param.name); });

TEST(NoSeededFault, IsSwitchedOnByItself) {
  spdlog::set_level(spdlog::level::off);
  for (std::uint64_t nth = 1; nth < 400; nth += 20)
    for (const Kind kind : kKinds) EXPECT_EQ(walk(kind, nth).wrong, "") << nth;
}

}  // namespace
}  // namespace latchkey
