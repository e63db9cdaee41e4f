// Walk: a store on a disk that will fail somewhere, and a caller who asks again until it is answered.
#pragma once

#include <gtest/gtest.h>

#include <optional>

#include "base/clock.hpp"
#include "store/sqlite/sqlite_store.hpp"
#include "support/fault_disk.hpp"

namespace latchkey {

class Walk {
 public:
  Walk(Fault fault, std::uint64_t nth, Unsynced unsynced, std::uint64_t seed)
      : disk(seed), random(seed), unsynced_(unsynced) {
    open();
    disk.plan(fault, nth);
  }

  // Asks until there is an answer: after an error it waits, after a crash it starts the store again.
  // `send` must be a call that recognises itself.
  template <class T, class Send>
  T ask(Send send) {
    for (int tries = 0; tries < 20; ++tries) {
      std::optional<Result<T>> answer;
      if (store) send(*store, [&](Result<T> reply) { answer = std::move(reply); });
      for (int steps = 0; store && !disk.is_dead() && !answer && steps < 5; ++steps) step();
      if (disk.is_dead() || !store) {
        crash();
        continue;
      }
      if (answer && answer->has_value()) return std::move(**answer);
      EXPECT_TRUE(!answer || facts(answer->error().code).retryable) << to_string(answer->error());
      clock.advance(std::chrono::seconds{2});
    }
    ADD_FAILURE() << "no answer after many tries";
    std::abort();
  }

  // As a killed process, or a machine that lost power, comes back.
  void crash() {
    if (store) store->abandon();
    store.reset();
    disk.restart(unsynced_);
    crashes += 1;
    open();
  }

  void close_and_open() {
    store.reset();
    if (disk.is_dead()) disk.restart(unsynced_);
    open();
  }

  FaultDisk disk;
  ManualClock clock{from_ms(1'770'000'000'000)};
  SeededRandom random;
  std::unique_ptr<SqliteStore> store;
  int crashes = 0;

 private:
  void step() { store->step(); }

  void open() {
    // A fault may strike while the file is being opened, too.
    for (int tries = 0; tries < 5 && !store; ++tries) {
      auto opened = SqliteStore::open({.file = "latchkey.db",
                                       .vfs = disk.vfs(),
                                       .stepped = true,
                                       .merge = {.window = 4, .window_max = 4, .slice_min = 2},
                                       .checkpoint_pages = 12},
                                      clock, random);
      if (opened) {
        store = std::move(*opened);
      } else if (disk.is_dead()) {
        disk.restart(unsynced_);
        crashes += 1;
      }
    }
    ASSERT_TRUE(store);
  }

  const Unsynced unsynced_;
};

}  // namespace latchkey
