#include "store/sqlite/open_state.hpp"

#include <gtest/gtest.h>

#include "base/random.hpp"

namespace latchkey {
namespace {

Uuid some_id(Random& random, bool there = true) {
  return there ? make_uuid_v7(from_ms(1), random.next(), random.next()) : Uuid{};
}

State some_state(Random& random) {
  const Instant at = from_ms(static_cast<std::int64_t>(random.next() >> (20 + random.next() % 44)));
  switch (random.next() % 4) {
    case 0:
      return Queued{at, static_cast<QueuedBy>(random.next() % 6)};
    case 1:
      return InDoubt{at};
    default: {
      const bool taken = random.next() % 2 == 0, named = random.next() % 2 == 0;
      return Running{.started_at = at,
                     .lease_until = at + Duration{random.next() % 100'000},
                     .claim = some_id(random, !taken && named),
                     .session = some_id(random, taken),
                     .cancel_requested = random.next() % 2 == 0};
    }
  }
}

TEST(OpenState, IsReadBackUnchanged) {
  SeededRandom random(7);
  std::string buffer;
  for (int i = 0; i < 10'000; ++i) {
    auto head = std::make_shared<RunHead>();
    head->id = some_id(random);
    struct Run run;
    run.head = head;
    run.origin = static_cast<Origin>(random.next() % 2);
    run.attempt = static_cast<std::uint32_t>(random.next() >> (32 + random.next() % 32));
    run.attempts_max = static_cast<std::uint32_t>(random.next());
    run.attempts_total = static_cast<std::uint32_t>(random.next() % 300);
    run.fence = static_cast<Fence>(random.next() >> 11);
    run.first_attempt_at = from_ms(static_cast<std::int64_t>(random.next() >> 22));
    run.waiting_for = static_cast<std::uint32_t>(random.next() % 3);
    run.opened_by = some_id(random, random.next() % 2 == 0);
    run.effect_key = random.next() % 2 == 0 ? head->id : some_id(random);
    run.last_error.assign(random.next() % 2 == 0 ? random.next() % 300 : 0, '\0');
    run.last_error_code.assign(random.next() % 2, 'c');
    run.state = some_state(random);

    struct Run back;
    back.head = head;
    unpack_open(pack_open(run, buffer), back);
    EXPECT_TRUE(back.state == run.state);
    EXPECT_EQ(
        std::tie(back.origin, back.attempt, back.attempts_max, back.attempts_total, back.fence, back.first_attempt_at,
                 back.waiting_for, back.opened_by, back.effect_key, back.last_error, back.last_error_code),
        std::tie(run.origin, run.attempt, run.attempts_max, run.attempts_total, run.fence, run.first_attempt_at,
                 run.waiting_for, run.opened_by, run.effect_key, run.last_error, run.last_error_code));
  }
}

// Damaged bytes must not be read beyond their end.
TEST(OpenState, TruncatedBytesAreReadToTheirEnd) {
  auto head = std::make_shared<RunHead>();
  struct Run run;
  run.head = head;
  run.last_error = "an error of some length";
  run.state = Queued{};
  std::string buffer;
  const std::string whole(pack_open(run, buffer));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    struct Run back;
    back.head = head;
    unpack_open(std::string(whole, 0, size), back);
    EXPECT_LE(back.last_error.size(), run.last_error.size());
  }
}

}  // namespace
}  // namespace latchkey
