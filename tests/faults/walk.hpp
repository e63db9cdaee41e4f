// Walk: a store on a disk with one fault, and a caller that retries until it gets a reply.
#pragma once

#include <gtest/gtest.h>

#include <future>
#include <optional>
#include <stdexcept>

#include "base/clock.hpp"
#include "store/sqlite/sqlite_store.hpp"
#include "support/fault_disk.hpp"

namespace latchkey {

// The settings of the store: large pages and rare merges, or small ones that the script's few keys already fill.
enum class Shape {
  wide,      // one page of keys, and a filter that is filled at once
  tight,     // pages split, merges and filter scans take many commits, the filter grows
  threaded,  // like tight, with a writer thread and a sync thread
};

class Walk {
 public:
  Walk(Shape shape, Fault fault, std::uint64_t nth, Unsynced unsynced)
      : disk(nth), random(nth), shape(shape), unsynced_(unsynced) {
    open();
    disk.plan(fault, nth);
    // A lost sync does harm only in a loss of power, which comes after one of the next replies.
    if (fault == Fault::lose_sync) answers_left_ = 1 + nth % 7;
  }

  // Sends a request until it gets a reply. Waits after an error, and opens the store again after a crash.
  // `send` must be idempotent.
  template <class T, class Send>
  T ask(Send send) {
    for (int tries = 0; tries < 20; ++tries) {
      const auto before = disk.is_due_within(kNear) ? list_states() : std::nullopt;
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
        // A request with an error must not have changed anything.
        if (const auto after = list_states(); before && after) EXPECT_EQ(*before, *after) << to_string(reply.error());
      }
      clock.advance(std::chrono::seconds{2});
      // Another caller's request comes first, and changes nothing.
      store->take({.functions = {"none"}, .limit = 1}, [](auto) {});
      if (shape != Shape::threaded) store->step();
    }
    throw std::runtime_error("no answer after many tries");
  }

  // Executes a read; ignores one error.
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

  // Opens the store again, as after a killed process or a loss of power.
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
  // More operations than one command executes.
  static constexpr std::uint64_t kNear = 200;

  // The state of every run, as far as a command can change it.
  std::optional<std::string> list_states() {
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
    // The fault may be in the opening of the file.
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
