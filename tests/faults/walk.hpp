// Walk: a store on a disk that will fail somewhere, and a caller who asks again until it is answered.
#pragma once

#include <gtest/gtest.h>

#include <future>
#include <optional>
#include <stdexcept>

#include "base/clock.hpp"
#include "store/sqlite/sqlite_store.hpp"
#include "support/fault_disk.hpp"

namespace latchkey {

// How the store is set up: few seams, or as many as the script's few keys can cross.
enum class Shape {
  wide,      // one page of keys, the filter filled at once
  tight,     // pages split, merges and scans of the filter run over many commits, the filter grows
  threaded,  // tight, with a writer thread and the file synced by another
};

class Walk {
 public:
  Walk(Shape shape, Fault fault, std::uint64_t nth, Unsynced unsynced)
      : disk(nth), random(nth), shape(shape), unsynced_(unsynced) {
    open();
    disk.plan(fault, nth);
    // A lost sync does harm only when power fails: after one of the next answers.
    if (fault == Fault::lose_sync) answers_left_ = 1 + nth % 7;
  }

  // Asks until there is an answer: after an error it waits, after a crash it starts the store again.
  // `send` must be a call that recognises itself.
  template <class T, class Send>
  T ask(Send send) {
    for (int tries = 0; tries < 20; ++tries) {
      const auto before = disk.is_due_within(kNear) ? look() : std::nullopt;
      const auto promise = std::make_shared<std::promise<Result<T>>>();
      std::future<Result<T>> answer = promise->get_future();
      if (store) send(*store, [promise](Result<T> reply) { promise->set_value(std::move(reply)); });
      const bool answered = store && wait_for(answer);
      if (disk.is_dead() || !store) {
        crash();
        continue;
      }
      if (answered) {
        Result<T> reply = answer.get();
        if (reply) {
          if (answers_left_ > 0 && disk.has_struck() && --answers_left_ == 0) crash();
          return *std::move(reply);
        }
        EXPECT_TRUE(facts(reply.error().code).retryable) << to_string(reply.error());
        // What is answered with an error has not happened: a caller may go on as if it had never asked.
        if (const auto after = look(); before && after) EXPECT_EQ(*before, *after) << to_string(reply.error());
      }
      clock.advance(std::chrono::seconds{2});
      // Somebody else comes first, with something that changes nothing.
      store->take({.functions = {"none"}, .limit = 1}, [](auto) {});
      if (shape != Shape::threaded) store->step();
    }
    throw std::runtime_error("no answer after many tries");
  }

  // A read: an error is passed over once.
  template <class Read>
  auto read(Read read) {
    std::string why;
    for (int tries = 0; tries < 5; ++tries) {
      if (disk.is_dead() || !store) crash();
      auto found = read(*store);
      if (found) return *std::move(found);
      why = to_string(found.error());
      EXPECT_TRUE(facts(found.error().code).retryable) << to_string(found.error());
      clock.advance(std::chrono::seconds{2});
      if (shape != Shape::threaded) store->step();
    }
    throw std::runtime_error("no read succeeds: " + why);
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
  const Shape shape;
  int crashes = 0;

 private:
  // More operations than one command makes.
  static constexpr std::uint64_t kNear = 200;

  // Every run, as far as a command could have changed it.
  std::optional<std::string> look() {
    if (!store) return std::nullopt;
    const auto page = store->list({.limit = 200});
    if (!page) return std::nullopt;
    std::string seen;
    for (const Run& run : page->runs)
      seen += to_string(run.id()) + " " + std::string(to_string(run.status())) + " fence " +
              std::to_string(static_cast<std::uint64_t>(run.fence)) + " generation " + std::to_string(run.generation) +
              "\n";
    return seen;
  }

  template <class T>
  bool wait_for(std::future<T>& answer) {
    const auto is_there = [&](std::chrono::milliseconds span) {
      return answer.wait_for(span) == std::future_status::ready;
    };
    if (shape == Shape::threaded) {
      for (int ms = 0; ms < 10'000 && !disk.is_dead(); ++ms)
        if (is_there(std::chrono::milliseconds{1})) return true;
      return is_there(std::chrono::milliseconds{0});
    }
    for (int steps = 0; !disk.is_dead() && !is_there(std::chrono::milliseconds{0}) && steps < 5; ++steps) store->step();
    return is_there(std::chrono::milliseconds{0});
  }

  SqliteSettings settings() const {
    SqliteSettings settings{.file = "latchkey.db",
                            .vfs = disk.vfs(),
                            .stepped = shape != Shape::threaded,
                            .merge = {.window = 4, .window_max = 4, .slice_min = 2},
                            .checkpoint_pages = 12};
    if (shape == Shape::wide) return settings;
    settings.merge.slice_min = 1;
    settings.merge.page_keys = 3;
    settings.merge.filter_room = 6;
    settings.merge.pages_scanned = 1;
    if (shape == Shape::threaded) settings.refuse_for = std::chrono::milliseconds{5};
    return settings;
  }

  void open() {
    // A fault may strike while the file is being opened, too.
    for (int tries = 0; tries < 5 && !store; ++tries) {
      auto opened = SqliteStore::open(settings(), clock, random);
      if (opened) {
        store = std::move(*opened);
      } else if (disk.is_dead()) {
        disk.restart(unsynced_);
        crashes += 1;
      }
    }
    if (!store) throw std::runtime_error("the store cannot be opened");
  }

  const Unsynced unsynced_;
  std::uint64_t answers_left_ = 0;
};

}  // namespace latchkey
